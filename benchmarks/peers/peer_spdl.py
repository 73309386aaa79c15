"""SPDL: FFmpeg's decoder, crop and scale in threads, and normalisation by tables of numpy."""
import random, struct

import numpy as np
import spdl.io
from spdl.pipeline import PipelineBuilder

import work

TABLES = [((np.arange(256) / 255 - m) / s).astype(np.float32) for m, s in zip(work.MEAN, work.STD)]
FLAGS = "flags=bilinear+accurate_rnd+full_chroma_int+full_chroma_inp"


def size_of(data):
    """Width and height of the frame header: SPDL tells them only after decoding."""
    at = 2
    while not (0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in (0xC4, 0xC8, 0xCC)):
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    height, width = struct.unpack_from(">HH", data, at + 5)
    return width, height


# To RGB before the crop is nearest to the reference, and converts more pixels than are wanted.
ORDERS = {"rgb-first": "scale=iw:ih:{FLAGS},format=gbrp,{crop},{flip}{scale}", "crop-first": "{crop},{flip}{scale}"}


def decode(data, order, crop, flip):
    x, y, w, h = crop
    steps = ORDERS[order].format(FLAGS=FLAGS, crop=f"crop={w}:{h}:{x}:{y}:exact=1", flip="hflip," if flip else "",
                                 scale=f"scale={work.SIZE}:{work.SIZE}:{FLAGS},format=rgb24")
    return spdl.io.decode_packets(spdl.io.demux_image(data), filter_desc=steps)


def normalised(frames):
    pixels = spdl.io.to_numpy(spdl.io.convert_frames(frames))
    out = np.empty((len(pixels), 3, work.SIZE, work.SIZE), np.float32)
    for channel, table in enumerate(TABLES):
        np.take(table, pixels[..., channel], out=out[:, channel])
    return out


def records(folder):
    while True:
        for path in work.shards(folder, ".tar"):
            with open(path, "rb") as f:
                for name, data in spdl.io.iter_tarfile(f):
                    if name.endswith(".jpg"):
                        yield bytes(data)


def collate(items):
    return normalised([frames for frames, _ in items]), sum(area for _, area in items)


def variant(order):
    def load(data):
        crop = work.draw_crop(random, *size_of(data))
        return decode(data, order, crop, random.random() < 0.5), crop[2] * crop[3]

    def speed(folder, threads):
        pipeline = (PipelineBuilder().add_source(records(folder)).pipe(load, concurrency=threads).aggregate(work.BATCH, drop_last=True)
                    .pipe(collate).add_sink(2).build(num_threads=threads))
        with pipeline.auto_stop():
            yield from pipeline

    def fixed(crops):
        for *crop, file in crops:
            with open(file, "rb") as f:
                yield normalised([decode(f.read(), order, crop, False)])[0]

    return speed, fixed


VARIANTS = {order: variant(order) for order in ORDERS}

if __name__ == "__main__":
    work.main(VARIANTS)
