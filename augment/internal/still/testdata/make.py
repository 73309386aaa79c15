"""Writes the images of this folder and what Pillow reads in them.

    python3 -m venv venv && venv/bin/pip install pillow==13.0.0 numpy==2.4.6
    venv/bin/python make.py

NAME.rgb is the picture as three bytes a pixel, alpha dropped; NAME.over.rgb is
the picture over the color (200, 100, 50). expected.tsv has the name, the width
and height, the channels as stored, the bits, and whether it is interlaced.
Pillow writes no PNG of 16 bits nor an interlaced one: those are put together
here, with all filters, and only read by Pillow.
"""
import io
import os
import struct
import zlib

import numpy as np
from PIL import Image

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(4)
rows = []
BACKGROUND = (200, 100, 50)


def note(name, channels, bits, interlaced, rgb, over=None):
    height, width = rgb.shape[:2]
    rows.append(f"{name}\t{width}\t{height}\t{channels}\t{bits}\t{int(interlaced)}\n")
    with open(os.path.join(here, name + ".rgb"), "wb") as f:
        f.write(rgb.astype(np.uint8).tobytes())
    if over is not None:
        with open(os.path.join(here, name + ".over.rgb"), "wb") as f:
            f.write(over.astype(np.uint8).tobytes())


def save(name, data):
    with open(os.path.join(here, name), "wb") as f:
        f.write(data)


def read(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    if image.mode == "I;16":
        gray = (np.asarray(image) >> 8).astype(np.uint8)
        return np.stack([gray] * 3, axis=2)
    return np.asarray(image.convert("RGB"))


def over(data):
    image = Image.open(io.BytesIO(data)).convert("RGBA")
    canvas = Image.new("RGB", image.size, BACKGROUND)
    canvas.paste(image, (0, 0), image)
    return np.asarray(canvas)


# --- PNG, by hand -----------------------------------------------------------


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def filtered(lines, distance):
    out, above = b"", None
    for i, line in enumerate(lines):
        above = above or bytes(len(line))
        kind = i % 5
        done = bytearray([kind])
        for k, v in enumerate(line):
            a = line[k - distance] if k >= distance else 0
            b = above[k]
            c = above[k - distance] if k >= distance else 0
            guess = [0, a, b, (a + b) // 2, paeth(a, b, c)][kind]
            done.append((v - guess) & 255)
        out += bytes(done)
        above = line
    return out


def pack(samples, depth):
    """Rows of samples (height, width * count) as bytes."""
    lines = []
    for row in samples:
        if depth == 16:
            lines.append(row.astype(">u2").tobytes())
        elif depth == 8:
            lines.append(row.astype(np.uint8).tobytes())
        else:
            bits = "".join(format(int(v), f"0{depth}b") for v in row)
            bits += "0" * (-len(bits) % 8)
            lines.append(int(bits, 2).to_bytes(len(bits) // 8, "big"))
    return lines


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(width, height, depth, kind, interlaced):
    count = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    most = 1 << depth
    if kind == 3:
        most = min(most, 11)
    # Steps with a little noise, so that filters have something to do.
    y, x = np.mgrid[0:height, 0:width]
    samples = np.stack([(x * (3 + c) + y * (5 - c)) * most // 97 + rng.integers(0, 3, (height, width)) for c in range(count)], axis=2) % most
    body = b""
    for x0, y0, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        part = samples[y0::dy, x0::dx]
        if part.size:
            body += filtered(pack(part.reshape(part.shape[0], -1), depth), max(1, count * depth // 8))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced)))
    if kind == 3:
        data += chunk(b"PLTE", rng.integers(0, 256, 3 * most).astype(np.uint8).tobytes())
        if interlaced:
            data += chunk(b"tRNS", bytes([0, 77, 200]))
    data += chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b"")
    return data


for kind, word, depths in [(0, "gray", (1, 2, 4, 8, 16)), (2, "rgb", (8, 16)), (3, "palette", (1, 2, 4, 8)), (4, "grayalpha", (8, 16)), (6, "rgba", (8, 16))]:
    for depth in depths:
        for interlaced in (False, True):
            name = f"{word}{depth}{'_adam7' if interlaced else ''}.png"
            data = png(19, 13, depth, kind, interlaced)
            save(name, data)
            channels = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}[kind] + (kind == 3 and interlaced)
            blended = over(data) if channels in (2, 4) else None
            note(name, channels, depth, interlaced, read(data), blended)

# Pictures so small that passes are empty.
for width, height in [(1, 1), (2, 3), (5, 1)]:
    data = png(width, height, 8, 2, True)
    save(f"rgb8_{width}x{height}.png", data)
    note(f"rgb8_{width}x{height}.png", 3, 8, True, read(data))

# --- GIF --------------------------------------------------------------------


def drawing(width, height):
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack([(x * 11 + y * 3) % 256, (x * 2 + y * 17) % 256, (x * y * 5) % 256], axis=2).astype(np.uint8)
    return Image.fromarray(rgb, "RGB")


def gif(width, height, colors, **options):
    image = drawing(width, height).quantize(colors)
    out = io.BytesIO()
    image.save(out, "GIF", optimize=False, **options)
    return bytearray(out.getvalue())


def descriptor(data):
    """Offset of the image descriptor of a GIF without comments."""
    at = 13 + (3 << (data[10] & 7) + 1 if data[10] & 128 else 0)
    while data[at] == 0x21:
        at += 2
        while data[at]:
            at += 1 + data[at]
        at += 1
    return at


def keep_gif(name, data, bits, interlaced, transparent):
    data = bytes(data)
    save(name, data)
    note(name, 4 if transparent else 3, bits, interlaced, read(data), over(data))


keep_gif("plain.gif", gif(21, 18, 256, interlace=0), 8, False, False)
keep_gif("interlaced.gif", gif(21, 18, 16, interlace=1), 4, True, False)
keep_gif("transparent.gif", gif(21, 18, 8, interlace=0, transparency=3), 3, False, True)
for name, transparency in [("small_frame.gif", None), ("small_frame_transparent.gif", 2)]:
    options = {} if transparency is None else {"transparency": transparency}
    data = gif(10, 8, 8, interlace=0, **options)
    data[6:10] = struct.pack("<HH", 17, 15)
    at = descriptor(data)
    data[at + 1 : at + 5] = struct.pack("<HH", 4, 5)
    keep_gif(name, data, 3, False, transparency is not None)
data = gif(10, 8, 8, interlace=0)
data[6:10] = struct.pack("<HH", 7, 15)  # the image is wider than the screen
keep_gif("wide_frame.gif", data, 3, False, False)

# --- WebP -------------------------------------------------------------------


def webp(name, image, channels, **options):
    out = io.BytesIO()
    image.save(out, "WEBP", **options)
    data = out.getvalue()
    save(name, data)
    note(name, channels, 8, False, read(data), over(data) if channels == 4 else None)


for width, height in [(1, 1), (2, 2), (3, 5), (16, 16), (33, 18)]:
    webp(f"lossy_{width}x{height}.webp", drawing(width, height), 3, quality=70)
webp("lossless.webp", drawing(23, 9), 3, lossless=True)
alpha = drawing(23, 14).convert("RGBA")
alpha.putalpha(Image.fromarray((np.mgrid[0:14, 0:23][1] * 11).astype(np.uint8), "L"))
webp("lossy_alpha.webp", alpha, 4, quality=80)
webp("lossless_alpha.webp", alpha, 4, lossless=True, exact=True)
out = io.BytesIO()
drawing(8, 8).save(out, "WEBP", save_all=True, append_images=[drawing(8, 8).rotate(90)], duration=10)
save("animated.webp", out.getvalue())

# --- Kinds that are refused by name -------------------------------------------

out = io.BytesIO()
drawing(8, 8).save(out, "AVIF")
save("refused.avif", out.getvalue())
for kind in ["BMP", "TIFF", "ICO", "PPM", "JPEG2000"]:
    out = io.BytesIO()
    drawing(16, 16).resize((4, 4)).save(out, kind)
    save("refused." + kind.lower(), out.getvalue()[:200])

with open(os.path.join(here, "expected.tsv"), "w") as f:
    f.writelines(rows)
