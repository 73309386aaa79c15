"""NVIDIA DALI on the CPU alone: its decoder of random crops, and of given ones."""
import itertools

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali import tfrecord

import work

MEAN, STD = [255 * m for m in work.MEAN], [255 * s for s in work.STD]


def finish(pixels, mirror):
    pixels = fn.resize(pixels, resize_x=work.SIZE, resize_y=work.SIZE, interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.crop_mirror_normalize(pixels, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, mirror=mirror)


def train(encoded):
    pixels = fn.decoders.image_random_crop(encoded, random_area=work.SCALE, random_aspect_ratio=work.RATIO, num_attempts=10,
                                           use_fast_idct=False, jpeg_fancy_upsampling=True)
    return finish(pixels, fn.random.coin_flip(probability=0.5)), pixels.shape()


@pipeline_def
def from_tar(paths, indexes):
    return train(fn.readers.webdataset(paths=paths, index_paths=indexes, ext=["jpg"]))


@pipeline_def
def from_tfrecord(paths, indexes):
    features = {"jpg": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    return train(fn.readers.tfrecord(path=paths, index_path=indexes, features=features)["jpg"])


@pipeline_def
def given(inputs):
    encoded, at, size = fn.external_source(source=inputs, num_outputs=3, batch=False)
    pixels = fn.decoders.image_slice(encoded, at, size, normalized_anchor=False, normalized_shape=False, axis_names="WH",
                                     use_fast_idct=False, jpeg_fancy_upsampling=True)
    return finish(pixels, 0)


def variant(pipeline, suffix):
    def speed(folder, threads):
        paths = work.shards(folder, suffix)
        p = pipeline(paths, [path + ".idx" for path in paths], batch_size=work.BATCH, num_threads=threads, device_id=None, seed=4)
        p.build()
        while True:
            batch, shapes = p.run()
            batch, shapes = batch.as_tensor(), shapes.as_array()
            yield np.asarray(batch), (shapes[:, 0] * shapes[:, 1]).sum()

    return speed, fixed


def fixed(crops):
    def inputs():  # the pipeline asks for more than are wanted of it
        for x, y, w, h, file in itertools.chain(crops, itertools.repeat(crops[-1])):
            yield np.fromfile(file, np.uint8), np.array([x, y], np.float32), np.array([w, h], np.float32)

    p = given(inputs(), batch_size=1, num_threads=1, device_id=None)
    p.build()
    for _ in crops:
        (batch,) = p.run()
        yield np.array(batch.as_array()[0])


VARIANTS = {"tar": variant(from_tar, ".tar"), "tfrecord": variant(from_tfrecord, ".tfrecord")}

if __name__ == "__main__":
    work.main(VARIANTS)
