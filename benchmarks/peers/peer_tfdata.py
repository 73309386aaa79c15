"""tf.data on TFRecords, with tf.image's fused decode_and_crop_jpeg."""
import math, os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf

import work

MEAN, STD = [255 * m for m in work.MEAN], [255 * s for s in work.STD]


def crop_of(encoded):
    """y, x, h, w by torchvision's rule. tf.image.sample_distorted_bounding_box draws otherwise: its crops are a seventh smaller."""
    shape = tf.cast(tf.io.extract_jpeg_shape(encoded), tf.float32)
    height, width = shape[0], shape[1]
    area = height * width * tf.random.uniform([10], *work.SCALE)
    aspect = tf.exp(tf.random.uniform([10], math.log(work.RATIO[0]), math.log(work.RATIO[1])))
    w, h = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (0 < w) & (w <= width) & (0 < h) & (h <= height)
    at = tf.argmax(fits)
    whole = tf.round(tf.stack([tf.minimum(height, width / work.RATIO[0]), tf.minimum(width, height * work.RATIO[1])]))
    size = tf.where(fits[at], tf.stack([h[at], w[at]]), whole)
    space = shape[:2] - size
    begin = tf.where(fits[at], tf.floor(tf.random.uniform([2]) * (space + 1)), tf.floor(space / 2))
    return tf.cast(tf.concat([begin, size], 0), tf.int32)


def finish(encoded, window, antialias, layout, flip):
    pixels = tf.image.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_ACCURATE", fancy_upscaling=True)
    pixels = tf.image.resize(pixels, [work.SIZE, work.SIZE], antialias=antialias)
    if flip:
        pixels = tf.image.random_flip_left_right(pixels)
    pixels = (pixels - MEAN) / STD
    return tf.transpose(pixels, [2, 0, 1]) if layout == "NCHW" else pixels


def variant(antialias, layout):
    def load(record):
        encoded = tf.io.parse_single_example(record, {"jpg": tf.io.FixedLenFeature([], tf.string)})["jpg"]
        window = crop_of(encoded)
        return finish(encoded, window, antialias, layout, True), window[2] * window[3]

    def speed(folder, threads):
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        options.threading.max_intra_op_parallelism = 1
        records = tf.data.TFRecordDataset(work.shards(folder, ".tfrecord")).repeat()
        for batch, areas in records.map(load, num_parallel_calls=threads).batch(work.BATCH, drop_remainder=True).prefetch(2).with_options(options):
            yield batch, tf.reduce_sum(areas)

    def fixed(crops):
        for x, y, w, h, file in crops:
            pixels = finish(tf.io.read_file(file), [y, x, h, w], antialias, layout, False).numpy()
            yield pixels if layout == "NCHW" else pixels.transpose(2, 0, 1)

    return speed, fixed


VARIANTS = {"nchw": variant(True, "NCHW"), "nhwc": variant(True, "NHWC"), "nhwc-no-antialias": variant(False, "NHWC")}

if __name__ == "__main__":
    work.main(VARIANTS)
