"""s3_tfdata.py READS INPUT: tf.data over S3, which tensorflow-io adds to it: TFRecords, by so many parallel reads. It opens files ahead of
them, three for each read: with more than one it has more connections than the others may. Reads all records once and delivers batches of 64
samples' bytes. INPUT and what is printed: benchmarks/s3/main.go."""
import json, os, sys, time

with open(sys.argv[2]) as f:
    TOLD = json.load(f)
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", S3_ENDPOINT=TOLD["endpoint"], S3_USE_HTTPS="0", S3_VERIFY_SSL="0", S3_DISABLE_MULTI_PART_DOWNLOAD="1")
import tensorflow as tf
import tensorflow_io  # for its file systems


def parse(records):
    return tf.io.parse_example(records, {"bin": tf.io.FixedLenFeature([], tf.string)})["bin"]


def main():
    files = tf.data.TFRecordDataset(TOLD["records"], buffer_size=8 << 20, num_parallel_reads=int(sys.argv[1]))
    data = files.batch(64).map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    begun = time.monotonic()
    samples = size = 0
    for batch in data:
        samples += batch.shape[0]
        size += int(tf.reduce_sum(tf.strings.length(batch)))
    print(json.dumps({"of": "records", "samples": samples, "bytes": size, "seconds": time.monotonic() - begun}), flush=True)


try:
    main()
    status = 0
except Exception as e:
    print(str(e)[:300], file=sys.stderr, flush=True)
    status = 1
os._exit(status)  # tensorflow-io does not end in peace
