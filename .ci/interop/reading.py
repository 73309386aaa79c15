"""How the peers read shards: every function returns plain values that can be compared.

A sample is (key, {field: bytes}); an Example is {name: (kind, [values])}, floats as their bit patterns.
"""
import base64, contextlib, io, json, os, subprocess, sys, tarfile, types, typing

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""


def _quiet_import():
    """TensorFlow greets on the standard error below Python's; keep that out of the report."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        import tensorflow
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
    return tensorflow


def _without_torch():
    """wids takes two base classes and a sampler's calls from torch; reading shards needs none of them."""
    T = typing.TypeVar("T")
    torch, utils, data = types.ModuleType("torch"), types.ModuleType("torch.utils"), types.ModuleType("torch.utils.data")
    dist = types.ModuleType("torch.distributed")
    dist.is_initialized = lambda: False
    data.Dataset = types.new_class("Dataset", (typing.Generic[T],))
    data.Sampler = types.new_class("Sampler", (typing.Generic[T],))
    torch.utils, torch.distributed, utils.data = utils, dist, data
    sys.modules |= {"torch": torch, "torch.utils": utils, "torch.utils.data": data, "torch.distributed": dist}


tf = _quiet_import()
import numpy as np
from webdataset.tariterators import group_by_keys, tar_file_expander

# --- tar -----------------------------------------------------------------------------------------------------------------


def plain(path):
    """The bytes of a file, decompressed by the program of its suffix."""
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
    if path.endswith(".gz"):
        return subprocess.run(["gzip", "-dc", path], check=True, stdout=subprocess.PIPE).stdout
    with open(path, "rb") as f:
        return f.read()


def webdataset(path):
    """Samples as webdataset reads them; a .gz is left to it, zstd it does not know."""
    if path.endswith(".zst"):
        stream = io.BytesIO(plain(path))
    else:
        stream = open(path, "rb")
    with stream:
        found = list(group_by_keys(tar_file_expander([{"url": path, "stream": stream}]), lcase=False))
    return [(s["__key__"], {k: v for k, v in s.items() if not k.startswith("__")}) for s in found]


def tarfile_names(path):
    with tarfile.open(fileobj=io.BytesIO(plain(path)), mode="r:") as t:
        return [m.name for m in t if m.isreg()]


def listing(program, path):
    """Names that a tar program lists, which must have nothing to complain of."""
    done = subprocess.run([program, "-tf", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"LC_ALL": "C.UTF-8"})
    if done.returncode or done.stderr:
        raise AssertionError(f"{program}: exit {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return [n for n in done.stdout.decode().splitlines() if not n.endswith("/")]


def wids(index, cache):
    """Samples that wids gives through a dataset index, in the index's order; it copies the shards into the folder cache."""
    _without_torch()
    import wids.wids

    with contextlib.redirect_stderr(io.StringIO()):  # it prints a summary there
        dataset = wids.wids.ShardListDataset(index, transformations=[], cache_dir=cache, keep=True)
    out = []
    for i in range(len(dataset)):
        s = dataset[i]
        out.append((s["__key__"], {k.removeprefix("."): v.read() for k, v in s.items() if not k.startswith("__")}))
    return out


# --- TFRecord ------------------------------------------------------------------------------------------------------------


def records(path, compression=""):
    """Payloads; TensorFlow checks both checksums of each."""
    return [r.numpy() for r in tf.data.TFRecordDataset(path, compression_type=compression)]


def _feature(feature):
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None, []
    values = list(getattr(feature, kind).value)
    if kind == "float_list":
        values = [int(np.float32(v).view("u4")) for v in values]
    return kind, values


def example(payload):
    features = tf.train.Example.FromString(payload).features.feature
    return {name: _feature(features[name]) for name in features}


def examples(path, compression=""):
    return [example(p) for p in records(path, compression)]


def as_samples(found):
    """Samples of Examples that were made from some: a key, and one byte string for each field."""
    out = []
    for e in found:
        single = {}
        for name, (kind, values) in e.items():
            assert kind == "bytes_list" and len(values) == 1, f"{name} holds {len(values)} values of {kind}"
            single[name] = values[0]
        out.append((single.pop("__key__").decode(), single))
    return out


# The tfrecord package brings descriptions of its own for TensorFlow's messages, so the two cannot share a process.
_BY_TFRECORD = """
import base64, json, sys
from tfrecord.reader import example_loader
for part in range(3):
    for e in example_loader(sys.argv[1], sys.argv[2], shard=(part, 3)):
        print(json.dumps({name: base64.b64encode(bytes(v)).decode() for name, v in e.items()}))
"""


def by_tfrecord(path, index):
    """Examples of single byte strings, as the tfrecord package reads them through an index of offsets, in three parts."""
    done = subprocess.run([sys.executable, "-c", _BY_TFRECORD, path, index], check=True, stdout=subprocess.PIPE)
    return [{name: base64.b64decode(v) for name, v in json.loads(line).items()} for line in done.stdout.splitlines()]


def tfrecord2idx(path, index):
    """Lets the tfrecord package write an index."""
    subprocess.run([sys.executable, "-W", "ignore", "-m", "tfrecord.tools.tfrecord2idx", path, index], check=True, stdout=subprocess.DEVNULL)
