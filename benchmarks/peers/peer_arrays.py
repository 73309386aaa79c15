"""Rows put together of a decoder and a resizer by hand, on webdataset's reader; two threads are two processes."""
import io, random

import numpy as np
import webdataset

import work

# value of a pixel -> normalised, a table for each channel
TABLES = [((np.arange(256) / 255 - m) / s).astype(np.float32) for m, s in zip(work.MEAN, work.STD)]


def normalise(pixels, out, flip):
    if flip:
        pixels = pixels[:, ::-1]
    for channel, table in enumerate(TABLES):
        np.take(table, pixels[:, :, channel], out=out[channel])


def pillow(data, crop):
    from PIL import Image

    image = Image.open(io.BytesIO(data))
    x, y, w, h = crop or work.draw_crop(random, *image.size)
    small = image.convert("RGB").crop((x, y, x + w, y + h)).resize((work.SIZE, work.SIZE), Image.Resampling.BILINEAR)
    return np.asarray(small), w * h


def simplejpeg(data, crop):
    import simplejpeg as decoder
    from PIL import Image

    pixels = decoder.decode_jpeg(data, colorspace="RGB", fastdct=False, fastupsample=False)
    x, y, w, h = crop or work.draw_crop(random, pixels.shape[1], pixels.shape[0])
    small = Image.fromarray(pixels[y:y + h, x:x + w]).resize((work.SIZE, work.SIZE), Image.Resampling.BILINEAR)
    return np.asarray(small), w * h


def opencv(data, crop):
    import cv2

    cv2.setNumThreads(1)
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
    x, y, w, h = crop or work.draw_crop(random, pixels.shape[1], pixels.shape[0])
    how = cv2.INTER_AREA if w >= work.SIZE and h >= work.SIZE else cv2.INTER_LINEAR  # its linear filter does not grow with the reduction
    return cv2.resize(pixels[y:y + h, x:x + w], (work.SIZE, work.SIZE), interpolation=how), w * h


def variant(load):
    def speed(folder, threads):
        records = iter(webdataset.WebDataset(work.shards(folder, ".tar"), shardshuffle=False).repeat().to_tuple("jpg"))
        while True:
            batch, area = np.empty((work.BATCH, 3, work.SIZE, work.SIZE), np.float32), 0
            for out in batch:
                pixels, of = load(next(records)[0], None)
                normalise(pixels, out, random.random() < 0.5)
                area += of
            yield batch, area

    def fixed(crops):
        for *crop, file in crops:
            out = np.empty((3, work.SIZE, work.SIZE), np.float32)
            with open(file, "rb") as f:
                normalise(load(f.read(), crop)[0], out, False)
            yield out

    return speed, fixed


VARIANTS = {load.__name__: variant(load) for load in (pillow, simplejpeg, opencv)}

if __name__ == "__main__":
    work.main(VARIANTS, by_process=True)
