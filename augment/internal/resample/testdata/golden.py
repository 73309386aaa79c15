"""Writes picture.png, and parts of it resized: pillow.json and opencv.json.

Run in this folder:
    pip install pillow==13.0.0 numpy opencv-python-headless==4.*
    python golden.py

Both files are lists of {"filter", "box": [x0, y0, x1, y1], "width", "height",
"rgb": base64 of the rows, of bytes or of float32}. A box of whole numbers is
cropped first, then resized; one with fractions is given to resize.
"""
import base64
import json

import cv2
import numpy
from PIL import Image

W, H = 61, 47
y, x = numpy.mgrid[0:H, 0:W]
rng = numpy.random.default_rng(4)
rgb = numpy.stack([
    x * 255 / (W - 1),                                # ramp
    127.5 + 127.5 * numpy.sin(x * y / 40),            # waves that grow finer
    numpy.where((x // 5 + y // 7) % 2, 230, 20),      # edges
], axis=-1)
rgb[20:, 30:] = rng.integers(0, 256, (H - 20, W - 30, 3))  # noise
picture = Image.fromarray(rgb.round().astype("uint8"), "RGB")
picture.save("picture.png", optimize=True)

filters = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
boxes = [
    ((0, 0, W, H), 30, 20),     # smaller by different ratios
    ((3, 5, 44, 36), 41, 31),   # a crop alone
    ((20, 10, 33, 21), 29, 31), # larger
    ((0, 0, W, H), 5, 3),       # by a lot
    ((11, 2, 52, 46), 23, 61),  # narrower and taller
    ((0, 0, W, H), 1, 1),
]
cases = []
for name, f in filters.items():
    for box, w, h in boxes:
        out = picture.crop(box).resize((w, h), f)
        cases.append({"filter": name, "box": box, "width": w, "height": h,
                      "rgb": base64.b64encode(out.tobytes()).decode()})
# The whole picture's ends within a pixel.
box = (0.4, 0.25, W - 0.3, H - 0.6)
out = picture.resize((17, 12), filters["bilinear"], box=box)
cases.append({"filter": "bilinear", "box": box, "width": 17, "height": 12,
              "rgb": base64.b64encode(out.tobytes()).decode()})
with open("pillow.json", "w") as f:
    json.dump(cases, f, indent=0)
    f.write("\n")

# Without antialias: OpenCV's float32 resize has the arithmetic of torch's
# interpolate (half-pixel centers, cubic with a = -0.75, edges repeated).
# The picture's contrast is halved first, so that nothing passes 0..255.
source = (numpy.asarray(picture) // 2 + 64).astype("float32")
cases = []
for name, f in (("bilinear", cv2.INTER_LINEAR), ("bicubic", cv2.INTER_CUBIC)):
    for (x0, y0, x1, y1), w, h in (((0, 0, W, H), 30, 20), ((20, 10, 33, 21), 29, 31), ((3, 5, 10, 9), 2, 13)):
        out = cv2.resize(numpy.ascontiguousarray(source[y0:y1, x0:x1]), (w, h), interpolation=f)
        out = out.astype("<f4")
        cases.append({"filter": name, "box": (x0, y0, x1, y1), "width": w, "height": h,
                      "rgb": base64.b64encode(out.tobytes()).decode()})
with open("opencv.json", "w") as f:
    json.dump(cases, f, indent=0)
    f.write("\n")
