"""peer_tokens.py VARIANT FILE SECONDS: tf.data on the file of tokens.py, batches of 512 padded to 512, read again and again; prints
{"records":..., "seconds":...}. peer_tokens.py VARIANT FILE sum: once, prints records and the sum of all values."""
import json, os, sys, time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf

BATCH, LENGTH, WARMUP = 512, 512, 2.0


def ragged(records):
    parsed = tf.io.parse_example(records, {"input_ids": tf.io.RaggedFeature(tf.int64)})
    return parsed["input_ids"].to_tensor(shape=[None, LENGTH])


def sparse(records):
    parsed = tf.io.parse_example(records, {"input_ids": tf.io.VarLenFeature(tf.int64)})["input_ids"]
    return tf.sparse.to_dense(tf.sparse.reset_shape(parsed, [tf.shape(records)[0], LENGTH]))


def sequence(records):
    """Padded to the longest of the batch by the parser, and then to the length."""
    feature = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=0)
    parsed = tf.io.parse_example(records, {"input_ids": feature})["input_ids"]
    return tf.pad(parsed, [[0, 0], [0, LENGTH - tf.shape(parsed)[1]]])


VARIANTS = {"ragged": ragged, "sparse": sparse, "sequence": sequence}


def batches(variant, file, repeat):
    records = tf.data.TFRecordDataset(file, buffer_size=8 << 20)
    if repeat:
        records = records.repeat()
    return records.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE).map(VARIANTS[variant], num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def main():
    variant, file, what = sys.argv[1:4]
    if what == "sum":
        count, total = 0, 0
        for batch in batches(variant, file, False):
            count += batch.shape[0]
            total += int(tf.reduce_sum(batch))
        print(count, total, flush=True)
        os._exit(0)
    it = iter(batches(variant, file, True))
    until = time.monotonic() + WARMUP
    while time.monotonic() < until:
        next(it)
    begun = ended = time.monotonic()
    count = 0
    while ended - begun < float(what):
        count += next(it).shape[0]
        ended = time.monotonic()
    print(json.dumps({"records": count, "seconds": ended - begun}), flush=True)
    os._exit(0)


main()
