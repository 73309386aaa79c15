"""checks.py SHARDTOOL [NAME...]: what shardtool writes is read by other tools and compared with what went in, and what
other tools wrote is checked by shardtool. Ends with a line of counts; exits 1 if any check failed.
"""
import hashlib, json, os, shutil, subprocess, sys, tempfile, traceback

import reading

TOOL = os.path.abspath(sys.argv[1])
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FIXTURES = os.path.join(ROOT, "fixtures")
TARS, TF, INDEX, PHOTOS = (os.path.join(FIXTURES, d) for d in ["tars", "tf", "index", "photos"])
CHECKS = []


class Skip(Exception):
    pass


def check(f):
    CHECKS.append((f.__name__, f))
    return f


def each(table):
    """One check for each row of a table; its first cell names it."""

    def make(f):
        for row in table:
            row = row if isinstance(row, tuple) else (row,)
            CHECKS.append((f"{f.__name__} {row[0]}", lambda row=row: f(*row)))
        return f

    return make


def tool(*args, exit=0):
    done = subprocess.run([TOOL, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != exit:
        raise AssertionError(f"shardtool {' '.join(args)}: exit {done.returncode}, want {exit}\n  {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def rows(*args, exit=0):
    return [json.loads(line) for line in tool(*args, exit=exit).splitlines()]


def same(got, want, what):
    if got == want:
        return
    if isinstance(got, list) and isinstance(want, list):
        for i, (g, w) in enumerate(zip(got, want)):
            if g != w:
                raise AssertionError(f"{what}, number {i}:\n  got  {short(g)}\n  want {short(w)}")
        raise AssertionError(f"{what}: {len(got)} of them, want {len(want)}")
    raise AssertionError(f"{what}:\n  got  {short(got)}\n  want {short(want)}")


def short(value):
    text = repr(value)
    return text if len(text) <= 600 else text[:600] + " ..."


def expected(folder):
    with open(os.path.join(folder, "expected.json")) as f:
        return json.load(f)


def fresh():
    return tempfile.mkdtemp(dir=SCRATCH)


def program(name):
    if not shutil.which(name):
        raise Skip(f"{name} is not installed")
    return name


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# --- tar to TFRecord, read by TensorFlow ------------------------------------------------------------------------------------

# Shards in which webdataset and shardtool see the same samples: no links, no hidden members, no leading dot.
ALIKE = [r["file"] for r in expected(TARS) if not r["differs"]]


@each(ALIKE + ["gnutar-case.tar"])
def tar_to_tfrecord(name):
    source, out = os.path.join(TARS, name), os.path.join(fresh(), "out.tfrecord")
    tool("convert", source, out)
    want = webdataset_of(name)
    same(reading.as_samples(reading.examples(out)), want, "samples")


def webdataset_of(name):
    path = os.path.join(TARS, name)
    if name.endswith(".zz"):
        import zlib

        with open(path, "rb") as f:
            data = zlib.decompress(f.read())
        path = os.path.join(fresh(), "plain.tar")
        with open(path, "wb") as f:
            f.write(data)
    if name.endswith(".zst"):
        program("zstd")
    if name.endswith(".gz"):
        data, path = gunzip(path), os.path.join(fresh(), "plain.tar")
        with open(path, "wb") as f:
            f.write(data)
    return reading.webdataset(path)


def gunzip(path):
    """By gzip, whose exit code 2 only warns of padding."""
    return subprocess.run(["gzip", "-dcq", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


@check
def photos_to_tfrecord():
    source, out = os.path.join(PHOTOS, "photos-000000.tar"), os.path.join(fresh(), "out.tfrecord")
    tool("convert", source, out)
    same(reading.as_samples(reading.examples(out)), reading.webdataset(source), "samples")


@check
def several_tars_to_numbered_tfrecords():
    folder = fresh()
    sources = [os.path.join(TARS, f"webdataset-00000{i}.tar") for i in range(2)]
    tool("convert", "--count", "3", *sources, os.path.join(folder, "part-%06d.tfrecord"))
    parts = sorted(os.listdir(folder))
    same(parts, [f"part-00000{i}.tfrecord" for i in range(3)], "shards")
    got = [reading.as_samples(reading.examples(os.path.join(folder, p))) for p in parts]
    same([len(g) for g in got], [3, 3, 1], "samples in each shard")
    same(sum(got, []), sum(map(reading.webdataset, sources), []), "samples")


# --- tar to tar, read by webdataset, tarfile, GNU tar, bsdtar -----------------------------------------------------------------


@each(ALIKE)
def tar_to_tar(name):
    out = os.path.join(fresh(), "out.tar")
    tool("convert", os.path.join(TARS, name), out)
    want = webdataset_of(name)
    same(reading.webdataset(out), want, "samples")
    names = [f"{key}.{field}" for key, fields in want for field in fields]
    same(reading.tarfile_names(out), names, "names by tarfile")
    for lister in ["tar", "bsdtar"]:
        if shutil.which(lister):
            same([unquoted(n) for n in reading.listing(lister, out)], names, f"names by {lister}")


def unquoted(name):
    """GNU tar lists bytes that its locale cannot print in octal."""
    return name.encode().decode("unicode_escape").encode("latin-1").decode() if "\\" in name else name


# --- TFRecord to tar and back ---------------------------------------------------------------------------------------------------


def tf_bytes(*values):
    return reading.tf.train.Feature(bytes_list=reading.tf.train.BytesList(value=values))


def write_examples(path, examples, compression=""):
    train = reading.tf.train
    with reading.tf.io.TFRecordWriter(path, reading.tf.io.TFRecordOptions(compression_type=compression)) as w:
        for e in examples:
            w.write(train.Example(features=train.Features(feature=e)).SerializeToString(deterministic=True))


KEYED = [(f"train/{i:04d}", {"cls": b"%d" % i, "jpg": bytes(range(i, i + 50)), "seg.png": b"", "txt": "größe".encode()}) for i in range(20)]


@each(["", "GZIP", "ZLIB"])
def tfrecord_to_tar(compression):
    folder = fresh()
    source, out = os.path.join(folder, "in.tfrecord"), os.path.join(folder, "out.tar")
    write_examples(source, [{"__key__": tf_bytes(k.encode())} | {n: tf_bytes(v) for n, v in fields.items()} for k, fields in KEYED], compression)
    tool("convert", source, out)
    same(reading.webdataset(out), KEYED, "samples by webdataset")
    names = [f"{key}.{field}" for key, fields in KEYED for field in fields]
    same(reading.tarfile_names(out), names, "names by tarfile")
    same(reading.listing("tar", out), names, "names by tar")
    if shutil.which("bsdtar"):
        same(reading.listing("bsdtar", out), names, "names by bsdtar")


@check
def records_without_keys_are_numbered():
    folder = fresh()
    source, out = os.path.join(folder, "in.tfrecord"), os.path.join(folder, "out.tar")
    write_examples(source, [{"txt": tf_bytes(b"%d" % i)} for i in range(12)])
    tool("convert", source, out)
    found = reading.webdataset(out)
    keys = [k for k, _ in found]
    same([int(k) for k in keys], list(range(12)), "keys as numbers")
    same(sorted(keys), keys, "keys, which sort as they come")
    same([f["txt"] for _, f in found], [b"%d" % i for i in range(12)], "texts")


@check
def photos_to_tar():
    source, out = os.path.join(PHOTOS, "photos-000001.tfrecord"), os.path.join(fresh(), "out.tar")
    tool("convert", source, out)
    want = [e["image/encoded"][1][0] for e in reading.examples(source)]
    found = reading.webdataset(out)
    same([[sha256(v) for v in fields.values() if v == w][:1] for (_, fields), w in zip(found, want)], [[sha256(w)] for w in want], "pictures")


@each(["examples.tfrecord", "sequences.tfrecord", "raw.tfrecord"])
def tfrecord_to_tar_and_back(name):
    folder = fresh()
    source, tar, back = os.path.join(TF, name), os.path.join(folder, "mid.tar"), os.path.join(folder, "back.tfrecord")
    tool("convert", source, tar)
    reading.tarfile_names(tar)
    reading.listing("tar", tar)
    tool("convert", tar, back)
    got, want = reading.records(back), reading.records(source)
    if name == "raw.tfrecord":
        same(got, want, "records")
    elif name == "sequences.tfrecord":
        parse = reading.tf.train.SequenceExample.FromString
        same([parse(p) for p in got], [parse(p) for p in want], "SequenceExamples")
    else:
        same([list(reading.example(p).items()) for p in got], [list(reading.example(p).items()) for p in want], "Examples")


@check
def photos_to_tar_and_back():
    folder = fresh()
    source, tar, back = os.path.join(PHOTOS, "photos-000001.tfrecord"), os.path.join(folder, "mid.tar"), os.path.join(folder, "back.tfrecord")
    tool("convert", source, tar)
    tool("convert", tar, back)
    same(reading.examples(back), reading.examples(source), "Examples")


@each(["examples.tfrecord", "sequences.tfrecord", "raw.tfrecord", "none.tfrecord", "examples.gzip.tfrecord", "examples.zlib.tfrecord"])
def tfrecord_to_tfrecord(name):
    source, out = os.path.join(TF, name), os.path.join(fresh(), "out.tfrecord")
    tool("convert", source, out)
    compression = "GZIP" if "gzip" in name else "ZLIB" if "zlib" in name else ""
    same(reading.records(out), reading.records(source, compression), "records")


# --- compressed outputs ---------------------------------------------------------------------------------------------------------------


@each([("out.tar.gz", "gzip"), ("out.tar.zst", "zstd")])
def compressed_tar(name, by):
    program(by)
    source, out = os.path.join(TARS, "webdataset-000000.tar"), os.path.join(fresh(), name)
    tool("convert", source, out)
    subprocess.run([by, "-tq", out], check=True)
    same(reading.webdataset(out), reading.webdataset(source), "samples")


@each([("out.tfrecord.gz", "GZIP", "gzip"), ("out.tfrecord", "GZIP", "gzip"), ("out.zlib.tfrecord", "ZLIB", "zlib"), ("out.tfrecord.zst", "", "zstd")])
def compressed_tfrecord(name, compression, method):
    out = os.path.join(fresh(), name)
    tool("convert", "--compress", method, os.path.join(TARS, "webdataset-000000.tar"), out)
    if method == "zstd":
        program("zstd")
        data, out = reading.plain(out), out.removesuffix(".zst")
        with open(out, "wb") as f:
            f.write(data)
    same(reading.as_samples(reading.examples(out, compression)), reading.webdataset(os.path.join(TARS, "webdataset-000000.tar")), "samples")


# --- pack -------------------------------------------------------------------------------------------------------------------------------


def folder_of_samples():
    folder = os.path.join(fresh(), "data")
    for key, fields in KEYED:
        for name, data in fields.items():
            path = os.path.join(folder, f"{key}.{name}")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
    return folder


@check
def pack_to_tar():
    out = os.path.join(fresh(), "out.tar")
    tool("pack", folder_of_samples(), out)
    same(reading.webdataset(out), KEYED, "samples")
    same(len(reading.listing("tar", out)), sum(len(f) for _, f in KEYED), "members by tar")


@check
def pack_to_tfrecord():
    out = os.path.join(fresh(), "out.tfrecord")
    tool("pack", folder_of_samples(), out)
    same(reading.as_samples(reading.examples(out)), KEYED, "samples")


@check
def extract_and_pack():
    folder = fresh()
    source, files, out = os.path.join(TARS, "webdataset-000000.tar"), os.path.join(folder, "files"), os.path.join(folder, "out.tar")
    tool("extract", source, files)
    tool("pack", files, out)
    same(reading.webdataset(out), reading.webdataset(source), "samples")


# --- indexes ------------------------------------------------------------------------------------------------------------------------------

DIALECTS = {"wds2idx v1.2": "wds", "wds2idx v1.1": "wds-1.1", "energon tar.idx": "energon", "tfrecord2idx": "dali"}
# wds2idx indexes the members that readers of WebDataset leave out.
INDEXES = [(r["file"], r["of"], DIALECTS[r["dialect"]]) for r in expected(INDEX)
           if r["dialect"] in DIALECTS and r["sound"] and "hidden" not in r["file"]]


@each(INDEXES)
def index_as_the_tools_write_it(name, of, dialect):
    out = os.path.join(fresh(), "out.idx")
    tool("index", "--dialect", dialect, "--output", out, os.path.join(INDEX, of))
    with open(out, "rb") as got, open(os.path.join(INDEX, name), "rb") as want:
        same(got.read(), want.read(), "index")


@each(INDEXES)
def index_of_the_tools_holds(name, of, _):
    tool("index", "--check", "--index", os.path.join(INDEX, name), os.path.join(INDEX, of))


@each([(r["file"], r["of"]) for r in expected(INDEX) if not r["sound"]])
def index_that_points_wrongly_is_refused(name, of):
    tool("index", "--check", "--index", os.path.join(INDEX, name), os.path.join(INDEX, of), exit=1)


@check
def wids_index_is_read_by_wids():
    folder = fresh()
    sources = [os.path.join(TARS, f"webdataset-00000{i}.tar") for i in range(2)]
    for s in sources:
        shutil.copy(s, folder)
    out = os.path.join(folder, "index.json")
    tool("index", "--dialect", "wids", "--output", out, *(os.path.join(folder, os.path.basename(s)) for s in sources))
    with open(out) as got, open(os.path.join(INDEX, "webdataset.wids.json")) as want:
        got, want = json.load(got), json.load(want)
    same(got["__kind__"], want["__kind__"], "kind")
    same(got["wids_version"], want["wids_version"], "version")
    shards = [{k: s[k] for k in ["nsamples", "filesize"]} | {"file": os.path.basename(s["url"])} for s in got["shardlist"]]
    same(shards, [{"nsamples": s["nsamples"], "filesize": s["filesize"], "file": s["url"]} for s in want["shardlist"]], "shards")
    for g, w in zip(got["shardlist"], want["shardlist"]):
        same(g.get("md5sum", w["md5sum"]), w["md5sum"], "md5sum")
    same(reading.wids(out, os.path.join(folder, "cache")), sum(map(reading.webdataset, sources), []), "samples by wids")


@check
def tfrecord_index_is_read_by_tfrecord():
    folder = fresh()
    shard, index = os.path.join(folder, "out.tfrecord"), os.path.join(folder, "out.idx")
    source = os.path.join(TARS, "webdataset-000000.tar")
    tool("convert", source, shard)
    tool("index", "--dialect", "dali", "--output", index, shard)
    got = [(e.pop("__key__").decode(), e) for e in reading.by_tfrecord(shard, index)]
    same(got, [(k, f) for k, f in reading.webdataset(source)], "samples by tfrecord")


@check
def tfrecord2idx_agrees_on_what_was_written():
    folder = fresh()
    shard, ours, theirs = (os.path.join(folder, n) for n in ["out.tfrecord", "ours.idx", "theirs.idx"])
    tool("convert", os.path.join(PHOTOS, "photos-000000.tar"), shard)
    tool("index", "--dialect", "dali", "--output", ours, shard)
    reading.tfrecord2idx(shard, theirs)
    with open(ours, "rb") as got, open(theirs, "rb") as want:
        same(got.read(), want.read(), "index")


# --- what other tools wrote, checked by shardtool -----------------------------------------------------------------------------------------------


def verified(path, *flags, exit=0):
    (row,) = rows("verify", "--json", *flags, path, exit=exit)
    same(row["ok"], exit == 0, f"ok, with errors {row['errors'][:3]}")
    return row


@each(ALIKE)
def verify_tar(name):
    row = verified(os.path.join(TARS, name))
    want = next(r for r in expected(TARS) if r["file"] == name)
    same((row["format"], row["samples"], row["errors_total"]), ("tar", len(want["samples"]), 0), "format, samples, errors")
    same(row["compression"] or "none", want["compression"] or "none", "compression")


@each(ALIKE)
def cat_tar(name):
    want = next(r for r in expected(TARS) if r["file"] == name)
    got = [{"key": r["key"], "fields": [{k: f[k] for k in ["name", "bytes", "sha256"]} for f in r["fields"]]} for r in rows("cat", "--json", os.path.join(TARS, name))]
    same(got, want["samples"], "samples")
    at = {m["name"]: m["offset_data"] for m in want["members"]}
    for r in rows("cat", "--json", os.path.join(TARS, name)):
        for f in r["fields"]:
            same(f["offset"], at[f"{r['key']}.{f['name']}"], f"where {r['key']}.{f['name']} starts")


@each([(r["file"], r["differs"]) for r in expected(TARS) if set(r["differs"]) & {"unsupported", "window"}])
def verify_tar_refused(name, _):
    verified(os.path.join(TARS, name), exit=1)


@check
def concatenated_tars():
    path = os.path.join(TARS, "gnutar-catted.tar")
    same([r["key"] for r in rows("cat", "--json", "--concatenated", path)], ["000", "001"], "keys")
    same(verified(path, "--concatenated")["samples"], 2, "samples")


@check
def verify_photos():
    same(verified(os.path.join(PHOTOS, "photos-000000.tar"))["samples"], 18, "samples")
    same(verified(os.path.join(PHOTOS, "photos-000001.tfrecord"))["records"], 18, "records")


@each([r["file"] for r in expected(TF)])
def verify_tfrecord(name):
    want = next(r for r in expected(TF) if r["file"] == name)
    flags = ["--type", "raw"] if "variants" in name else []
    row = verified(os.path.join(TF, name), *flags)
    same((row["format"], row["records"], row["errors_total"]), ("tfrecord", len(want["records"]), 0), "format, records, errors")


@each([r["file"] for r in expected(TF)])
def cat_tfrecord_raw(name):
    want = next(r for r in expected(TF) if r["file"] == name)
    got = [{"offset": r["offset"], "bytes": r["fields"][0]["bytes"], "sha256": r["fields"][0]["sha256"]} for r in rows("cat", "--json", "--raw", os.path.join(TF, name))]
    same(got, [{k: r[k] for k in ["offset", "bytes", "sha256"]} for r in want["records"]], "records")


@check
def npy_is_numpys():
    import numpy as np

    folder = fresh()
    made = subprocess.run(["go", "test", "-count", "1", "-run", "^TestNPYForPeers$", "./tensor"], cwd=ROOT, env={**os.environ, "NPY_DIR": folder}, capture_output=True, text=True)
    same(made.returncode, 0, made.stdout + made.stderr)
    halves = np.arange(15, dtype="f4").reshape(3, 5) / 2
    for name, want in {
        "f4": np.arange(120, dtype="f4").reshape(2, 3, 4, 5) / 2,
        "f2": halves.astype("f2"),
        "bf16": (halves.view("u4") >> 16).astype("u2"),  # so few bits are cut without rounding
        "u1": np.arange(7, dtype="u1"),
        "i4": -np.arange(9, dtype="i4").reshape(1, 9),
        "i8": np.zeros((), "i8"),
        "f8": np.zeros((4, 0)),
        "i1": -np.arange(5, dtype="i1"),
        "i2": -np.arange(5, dtype="i2") * 256,
        "u2": ~np.arange(5, dtype="u2"),
        "u4": ~np.arange(5, dtype="u4"),
        "u8": ~np.arange(5, dtype="u8"),
        "b1": np.arange(5) % 2 == 0,
        "long": np.arange(2, dtype="u1").reshape((1,) * 22 + (2,)),
    }.items():
        got = np.load(os.path.join(folder, name + ".npy"))
        same((got.dtype, got.shape, got.tobytes()), (want.dtype, want.shape, want.tobytes()), name)


@check
def codec_expectations_are_what_the_tools_make():
    """What format/codec is tested against, made anew by NumPy, webdataset and TensorFlow."""
    folder = fresh()
    os.mkdir(os.path.join(folder, "make"))
    recipe = shutil.copy(os.path.join(FIXTURES, "make", "codec.py"), os.path.join(folder, "make"))
    made = subprocess.run([sys.executable, recipe], capture_output=True, text=True)
    same(made.returncode, 0, made.stderr)
    with open(os.path.join(folder, "codec", "expected.json"), "rb") as got, open(os.path.join(FIXTURES, "codec", "expected.json"), "rb") as want:
        same(got.read(), want.read(), "expected.json")


# --- running ---------------------------------------------------------------------------------------------------------------------------------------


def main():
    passed, failed, skipped = 0, [], 0
    for name, run in CHECKS:
        if sys.argv[2:] and not any(word in name for word in sys.argv[2:]):
            continue
        try:
            run()
            passed += 1
        except Skip as why:
            skipped += 1
            print(f"skip {name}: {why}")
        except AssertionError as err:
            failed.append(name)
            print(f"FAIL {name}: {err}")
        except Exception:
            failed.append(name)
            print(f"FAIL {name}:\n{traceback.format_exc()}")
    print(f"{passed} passed, {len(failed)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    SCRATCH = tempfile.mkdtemp(prefix="shardtool-peers-")
    try:
        code = main()
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
    sys.exit(code)
