"""Writes what torchvision on Pillow's images gives for each operation, with its
parameters fixed, to operations.json beside this file, and the picture they are
done to, picture.png. Needs torch, torchvision, pillow, numpy; the versions are
in the output. Pictures are PNG in base64 but for the tensors, which are raw."""

import base64, io, json, math, os, sys
import numpy as np
import PIL
from PIL import Image
import torch, torchvision
from torchvision.transforms import InterpolationMode as IM
from torchvision.transforms import functional as F1
from torchvision.transforms.v2 import functional as F
from torchvision.transforms import v2

here = os.path.dirname(os.path.abspath(__file__))
W, H = 27, 21


def picture(w, h):
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    a = np.stack([
        127.5 + 127.4 * np.sin(x / 3.1 + y / 5.3),
        20 + 190 * (x / w) * (0.5 + 0.5 * np.cos(y / 4.0)),
        200 - 150 * (y / h) + 45 * np.sin(x * y / 60.0),
    ], -1)
    a += np.random.default_rng(4).normal(0, 9, a.shape)
    a = np.clip(a, 0, 255).astype(np.uint8)
    a[2:6, 3:7] = (255, 255, 255)
    a[8:11, 20:23] = (0, 0, 0)
    a[15:17, 5:22] = (90, 90, 90)
    return Image.fromarray(a, "RGB")


pic = picture(W, H)
square = picture(17, 17)
tiny = {"1x1": picture(12, 12).crop((7, 7, 8, 8)), "1x9": pic.crop((10, 4, 11, 13)), "9x1": pic.crop((4, 10, 13, 11)), "2x2": pic.crop((4, 10, 6, 12))}


def png(img):
    b = io.BytesIO()
    img.save(b, "PNG", optimize=True)
    return base64.b64encode(b.getvalue()).decode()


cases = []


def add(name, out, src="picture", **params):
    if isinstance(out, torch.Tensor):
        out = Image.fromarray(out.permute(1, 2, 0).numpy(), "RGB")
    if out.mode == "L":
        out = Image.merge("RGB", (out, out, out))
    cases.append({"op": name, "source": src, "params": params, "png": png(out)})


filters = {"nearest": IM.NEAREST, "bilinear": IM.BILINEAR, "bicubic": IM.BICUBIC, "lanczos": IM.LANCZOS}
for f, mode in filters.items():
    for h, w in ((8, 9), (21, 15), (37, 27), (1, 1), (5, 60)):
        add("resize", F.resize(pic, [h, w], interpolation=mode), height=h, width=w, filter=f)
    for k, img in tiny.items():
        add("resize", F.resize(img, [5, 6], interpolation=mode), src=k, height=5, width=6, filter=f)
t = F.pil_to_tensor(pic)
for f in ("bilinear", "bicubic"):
    for h, w in ((8, 9), (37, 27), (5, 60)):
        r = F.resize(t, [h, w], interpolation=filters[f], antialias=False)
        add("resize", r, height=h, width=w, filter=f, plain=True)
for size, most in ((16, 0), (40, 0), (20, 23), (20, 60), (0, 50)):
    kw = {"max_size": most} if most else {}
    for k, img in (("picture", pic), ("tall", pic.transpose(Image.ROTATE_90))):
        out = F.resize(img, [size] if size else None, **kw)
        cases.append({"op": "size", "source": k, "params": {"size": size, "max": most}, "width": out.width, "height": out.height})
for h, w in ((14, 15), (30, 10), (21, 27), (32, 31), (8, 28)):
    add("centercrop", F.center_crop(pic, [h, w]), height=h, width=w)
for mode in ("constant", "edge", "reflect", "symmetric"):
    add("pad", F.pad(pic, [3, 5, 7, 2], fill=(9, 8, 7), padding_mode=mode), edges=[3, 5, 7, 2], mode=mode)
    add("pad", F.pad(tiny["2x2"], [3, 5, 7, 2], fill=(9, 8, 7), padding_mode=mode), src="2x2", edges=[3, 5, 7, 2], mode=mode)
for b in (0.0, 0.4, 1.0, 1.7):
    add("brightness", F.adjust_brightness(pic, b), value=b)
    add("contrast", F.adjust_contrast(pic, b), value=b)
    add("saturation", F.adjust_saturation(pic, b), value=b)
    add("sharpness", F.adjust_sharpness(pic, b), value=b)
    add("sharpness", F.adjust_sharpness(tiny["1x9"], b), src="1x9", value=b)
for h in (-0.5, -0.13, 0.0, 0.002, 0.21, 0.5):
    add("hue", F.adjust_hue(pic, h), value=h)
add("grayscale", F.rgb_to_grayscale(pic, 3))
for bits in (1, 3, 7, 8):
    add("posterize", F.posterize(pic, bits), value=bits)
for th in (0.0, 100.5, 128.0, 255.0):
    add("solarize", F.solarize(pic, th), value=th)
for k, img in (("picture", pic), ("2x2", tiny["2x2"]), ("1x1", tiny["1x1"])):
    add("autocontrast", F.autocontrast(img), src=k)
    add("equalize", F.equalize(img), src=k)
big = pic.resize((54, 42), Image.NEAREST)
add("equalize", F.equalize(big), src="big")
for f in ("nearest", "bilinear", "bicubic"):
    for a in (0.0, 17.0, -33.3, 90.0, 180.0, 270.0):
        add("rotate", F.rotate(pic, a, interpolation=filters[f], fill=[1, 2, 3]), value=a, filter=f)
    for a in (90.0, 270.0, 12.5):
        add("rotate", F.rotate(square, a, interpolation=filters[f], fill=[1, 2, 3]), src="square", value=a, filter=f)
for k, s in ((3, 0.5), (5, 1.1), (9, 2.0), (23, 1.7)):
    add("blur", F.gaussian_blur(pic, [k, k], [s, s]), kernel=k, value=s)
auto = v2.RandAugment()
for name, m in (("ShearX", 0.3), ("ShearX", -0.21), ("ShearY", 0.3), ("ShearY", -0.99), ("TranslateX", 5.7), ("TranslateX", -5.7),
                ("TranslateY", 3.0), ("TranslateY", -8.2), ("Rotate", 27.0), ("Rotate", -135.0), ("Brightness", -0.6), ("Color", 0.9),
                ("Contrast", -0.9), ("Sharpness", 0.9), ("Posterize", 4), ("Solarize", 0.4), ("AutoContrast", 0), ("Equalize", 0), ("Identity", 0)):
    for f in ("nearest", "bilinear") if name[0] in "ST" else ("nearest",):
        add("auto", auto._apply_image_or_video_transform(pic, name, float(m), filters[f], {Image.Image: None}), choice=name, value=m, filter=f)

magnitudes = []
for cls in (v2.RandAugment, v2.TrivialAugmentWide):
    for name, (fn, signed) in cls._AUGMENTATION_SPACE.items():
        m = fn(31, H, W)
        magnitudes.append({"space": cls.__name__, "choice": name, "signed": signed, "values": None if m is None else [float(v) for v in m]})

# Tensors: float32, little endian, in base64.
def raw(t):
    return base64.b64encode(t.contiguous().numpy().astype("<f4").tobytes()).decode()

mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
small = F.resize(pic, [6, 7])
x = F.to_dtype(F.pil_to_tensor(small), torch.float32, scale=True)
n = F.normalize(x, mean, std)
tensors = {
    "height": 6, "width": 7, "png": png(small), "scaled": raw(x), "normalized": raw(n),
    "erased": raw(F.erase(n, 1, 2, 3, 4, torch.tensor([1.5, -2.0, 0.25])[:, None, None])),
    "float16": base64.b64encode(n.to(torch.float16).numpy().tobytes()).decode(),
    "bfloat16": base64.b64encode(n.to(torch.bfloat16).view(torch.int16).numpy().tobytes()).decode(),
}

g = torch.Generator().manual_seed(7)
batch, labels = torch.randn(3, 2, 4, 5, generator=g), torch.tensor([2, 0, 3])
mix, cut = v2.MixUp(num_classes=4), v2.CutMix(num_classes=4)
lam, box = 0.3, (1, 1, 4, 3)
kept = 1 - 6 / 20
batches = {
    "shape": [3, 2, 4, 5], "labels": [2, 0, 3], "classes": 4, "images": raw(batch),
    "lambda": lam, "mixup": raw(mix.transform(batch, {"labels": labels, "lam": lam, "batch_size": 3})), "mixup_labels": raw(mix._mixup_label(labels, lam=lam)),
    "box": box, "cutmix": raw(cut.transform(batch, {"labels": labels, "box": box, "batch_size": 3})), "cutmix_labels": raw(cut._mixup_label(labels, lam=kept)),
}

sources = {"picture": png(pic), "square": png(square), "big": png(big), "tall": png(pic.transpose(Image.ROTATE_90))}
sources.update({k: png(v) for k, v in tiny.items()})
versions = {"torch": torch.__version__.split("+")[0], "torchvision": torchvision.__version__.split("+")[0], "pillow": PIL.__version__}
with open(os.path.join(here, "operations.json"), "w") as f:
    json.dump({"versions": versions, "sources": sources, "cases": cases, "magnitudes": magnitudes, "tensors": tensors, "batches": batches}, f, separators=(",", ":"))
    f.write("\n")
print(versions, len(cases))
