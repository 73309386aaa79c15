"""compare.py WORK [--rounds N] [--seconds S] [--threads 1,2] [--only NAME,...] [--pixels-only]

Runs shardtool, its peers and libjpeg-turbo in turns, and prints one table. WORK is the folder that run.sh has prepared: shardtool,
fixed, ref, venv, photos/, shards/. Results go to WORK/results.json too. Nothing else should run meanwhile.
"""
import argparse, itertools, json, os, random, statistics, subprocess, sys

import numpy as np

import work

HERE = os.path.dirname(os.path.abspath(__file__))

# name, file and variant, and why the row does other work than the others, if that is known beforehand
PEERS = [
    ("DALI, tar", "dali", "tar", None),
    ("DALI, TFRecord", "dali", "tfrecord", None),
    ("tf.data", "tfdata", "nchw", None),
    ("tf.data, NHWC", "tfdata", "nhwc", "NHWC"),
    ("tf.data, NHWC, not antialiased", "tfdata", "nhwc-no-antialias", "NHWC, not antialiased"),
    ("torch, webdataset, Pillow", "torch", "pillow", None),
    ("torch, webdataset, torchvision.io", "torch", "tensor", None),
    ("SPDL", "spdl", "rgb-first", None),
    ("SPDL, crop before colour", "spdl", "crop-first", None),
    ("webdataset, Pillow", "arrays", "pillow", None),
    ("webdataset, simplejpeg, Pillow", "arrays", "simplejpeg", None),
    ("webdataset, OpenCV", "arrays", "opencv", None),
]
FLOORS = [("libjpeg-turbo, Huffman stage", "entropy"), ("libjpeg-turbo, whole picture to RGB", "full"), ("libjpeg-turbo, crop to RGB", "crop")]

# Work is equal if the pixels are those of the reference within these grey levels (in the mean, and 99.9% of them), and crops as
# large within this share. Other decoders and other antialiasing filters are within, resizing without antialiasing is not.
MEAN_LIMIT, RARE_LIMIT, AREA_LIMIT = 1.0, 15.0, 0.05

# shardtool's own pixels are to be nearer, or the run fails: it has PIL's filter, and differs by rounding and by resizing chroma at its own
# resolution.
OWN_MEAN_LIMIT, OWN_RARE_LIMIT = 0.5, 6.0


# --- the reference ---

def weights(inside, begin, length, out):
    """[out, inside]: PIL's and torchvision's antialiased bilinear: a triangle as wide as the reduction, cut at the crop's rim."""
    scale = length / out
    support = max(1.0, scale)
    matrix = np.zeros((out, inside))
    for i in range(out):
        centre = (i + 0.5) * scale
        low, high = max(0, int(centre - support + 0.5)), min(length, int(centre + support + 0.5))
        row = np.maximum(0, 1 - np.abs((np.arange(low, high) + 0.5 - centre) / support))
        matrix[i, begin + low:begin + high] = row / row.sum()
    return matrix


def reference(ref, crops):
    """float64 grey levels [N, 3, SIZE, SIZE]: libjpeg's RGB, resized in float64."""
    out = np.empty((len(crops), 3, work.SIZE, work.SIZE))
    for i, (x, y, w, h, file) in enumerate(crops):
        dump = subprocess.run([ref, "rgb", file], capture_output=True, check=True).stdout
        line, raw = dump.split(b"\n", 1)
        width, height, channels = map(int, line.split()[1:])
        pixels = np.frombuffer(raw, np.uint8).reshape(height, width, channels).astype(np.float64)
        for c in range(3):
            out[i, c] = weights(height, y, h, work.SIZE) @ pixels[:, :, c % channels] @ weights(width, x, w, work.SIZE).T
    return out


def difference(path, want):
    """Mean, 99.9th percentile and maximum of the difference in grey levels of normalised float32."""
    got = np.fromfile(path, np.float32)
    if got.size != want.size:
        raise RuntimeError(f"{got.size} values, want {want.size}")
    got = got.reshape(want.shape).astype(np.float64)
    got = (got * np.array(work.STD)[:, None, None] + np.array(work.MEAN)[:, None, None]) * 255
    d = np.abs(got - want)
    return float(d.mean()), float(np.quantile(d, 0.999)), float(d.max())


# --- rows ---

class Absent(Exception):
    pass


def pinned(threads, command):
    """The command on as many cores, with libraries that would start threads of their own told to keep to them."""
    env = dict(os.environ, GOMAXPROCS=str(threads), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3")
    r = subprocess.run(["taskset", "-c", "0-%d" % (threads - 1), *command], capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=600)
    if r.returncode:
        lines = (r.stderr or r.stdout).strip().splitlines() or [f"exit {r.returncode}"]
        raise Absent(lines[-1].strip()[:160])
    return r


class Drawing:
    """A row that draws its crops itself, and tells how large they were in each measurement."""

    drawn, area_sum = 0, 0.0

    def count(self, images, area):
        self.drawn += images
        self.area_sum += images * area

    @property
    def area(self):
        """The mean of all crops of all rounds."""
        return self.area_sum / self.drawn if self.drawn else None


class Peer(Drawing):
    def __init__(self, folder, name, file, variant, unequal):
        self.folder, self.name, self.unequal, self.kind = folder, name, unequal, "peer"
        self.command = [os.path.join(folder, "venv", "bin", "python"), os.path.join(HERE, f"peer_{file}.py"), variant]
        reason = os.path.join(folder, "absent", file)
        if os.path.exists(reason):
            with open(reason) as f:
                raise Absent(f.read().strip())

    def fixed(self, listing, out):
        pinned(1, [*self.command, "fixed", listing, out])

    def speed(self, threads, seconds):
        r = json.loads(pinned(threads, [*self.command, "speed", os.path.join(self.folder, "shards"), str(threads), str(seconds)]).stdout.splitlines()[-1])
        self.count(r["images"], r["area"])
        return r["images"] / r["seconds"]


class Shardtool(Drawing):
    unequal, kind = None, "shardtool"

    def __init__(self, folder, suffix, seed):
        self.seed = seed
        self.folder, self.name = folder, "shardtool, " + {".tar": "tar", ".tfrecord": "TFRecord"}[suffix]
        self.shards = work.shards(os.path.join(folder, "shards"), suffix)

    def fixed(self, listing, out):
        with open(out, "wb") as f:
            command = [os.path.join(self.folder, "fixed"), "pixels", str(work.SIZE), str(self.seed), listing]
            r = subprocess.run(command, stdout=f, stderr=subprocess.PIPE, text=True)
        if r.returncode:
            raise Absent(r.stderr.strip())

    def speed(self, threads, seconds):
        command = [os.path.join(self.folder, "shardtool"), "bench", "--json", "--quiet", "--workers", str(threads), "--batch", str(work.BATCH),
                   "--warmup", f"{work.WARMUP}s", "--duration", f"{seconds}s", *self.shards]
        r = json.loads(pinned(threads, command).stdout.splitlines()[-1])
        self.count(r["emitted_per_s"] * r["seconds"], r["mpix_per_s"] * 1e6 / r["emitted_per_s"])  # it decodes the crop alone
        return r["emitted_per_s"]


class Floor:
    unequal, kind = "decoding alone, from memory", "floor"

    def __init__(self, folder, name, op, listing, crops):
        self.name, self.op, self.images, self.area = name, op, len(crops), None
        self.command = [os.path.join(folder, "ref"), "bench", listing]
        if op == "crop":
            self.area = statistics.fmean(w * h for _, _, w, h, _ in crops)

    def fixed(self, listing, out):
        raise Absent("no tensor")

    def speed(self, threads, seconds):
        """So many processes, each on a core of its own, at the same time; their rates add up."""
        servers = [subprocess.Popen(["taskset", "-c", str(core), *self.command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for core in range(threads)]
        try:
            for s in servers:
                s.stdout.readline()
            once = max(self.ask(servers, 1))
            passes = max(1, round(seconds / once))
            return sum(self.images * passes / t for t in self.ask(servers, passes))
        finally:
            for s in servers:
                s.stdin.close()
                s.wait()

    def ask(self, servers, passes):
        for s in servers:
            s.stdin.write(f"{self.op} {passes}\n")
            s.stdin.flush()
        return [json.loads(s.stdout.readline())["seconds"] for s in servers]


# --- the run ---

def expected_area(files):
    """The mean area of crops by torchvision's rule."""
    from PIL import Image

    rng, areas = random.Random(5), []
    for file in files:
        with Image.open(file) as image:
            size = image.size
        for _ in range(256):
            _, _, w, h = work.draw_crop(rng, *size)
            areas.append(w * h)
    return statistics.fmean(areas)


def draw_list(folder, files, area):
    """Crops that shardtool draws, one for each photograph, of the first seed with which they are as large in the mean as by
    torchvision's rule in the long run, as libjpeg decodes them too. Returns the list and its seed."""
    seeds = 256
    drawn = subprocess.run([os.path.join(folder, "fixed"), "draw", str(work.SIZE), str(seeds), *files], capture_output=True, text=True, check=True).stdout
    lists = [[] for _ in range(seeds)]
    for line in drawn.splitlines():
        seed, crop = line.split(maxsplit=1)
        lists[int(seed)].append(crop)
    areas = [statistics.fmean(int(w) * int(h) for _, _, w, h, _ in (line.split(maxsplit=4) for line in lines)) for lines in lists]
    seed = next((s for s in range(seeds) if abs(areas[s] / area - 1) < 0.005), None)
    if seed is None:
        raise SystemExit(f"of {seeds} seeds none draws crops of {area:.0f} pixels in the mean: they have {min(areas):.0f} to {max(areas):.0f}")
    listing = os.path.join(folder, "crops.txt")
    with open(listing, "w") as f:
        f.writelines(line + "\n" for line in lists[seed])
    return listing, seed


def make_rows(folder, listing, crops, seed, only):
    rows, absent = [], {}
    makers = [("shardtool, tar", lambda: Shardtool(folder, ".tar", seed)), ("shardtool, TFRecord", lambda: Shardtool(folder, ".tfrecord", seed))]
    makers += [(p[0], lambda p=p: Peer(folder, *p)) for p in PEERS]
    makers += [(name, lambda name=name, op=op: Floor(folder, name, op, listing, crops)) for name, op in FLOORS]
    for name, make in makers:
        if only and not any(o.lower() in name.lower() for o in only):
            continue
        try:
            row = make()
        except Absent as e:
            absent[name] = str(e)
            continue
        row.rates, row.pixels = {}, None
        rows.append(row)
    return rows, absent


def judge(row, area):
    """Why the row does not count, or None."""
    if row.kind == "floor" or row.unequal:
        return row.unequal
    if row.pixels is None:
        return "its pixels were not compared"
    if row.pixels[0] > MEAN_LIMIT or row.pixels[1] > RARE_LIMIT:
        return "other pixels"
    if row.area is None:
        return "its crops were not measured"
    if abs(row.area / area - 1) > AREA_LIMIT:
        return "other crops"
    return None


def table(rows, absent, threads, area):
    head = ["row", *[f"{n} core{'s' * (n > 1)}: images/s (least to most)" for n in threads], "crop, pixels", "difference: mean, 99.9%, most", "counts"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        speeds = []
        for n in threads:
            r = row.rates.get(n)
            speeds.append(f"{statistics.median(r):.0f} ({min(r):.0f} to {max(r):.0f})" if r else "")
        pixels = "%.2f, %.1f, %.0f" % row.pixels if row.pixels else ""
        lines.append([row.name, *speeds, f"{row.area:.0f}" if row.area else "", pixels, "no: " + judge(row, area) if judge(row, area) else "yes"])
    for name, reason in absent.items():
        lines.append([name, *[""] * (len(head) - 2), "absent: " + reason])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def ratios(rows, threads, area):
    """shardtool's medians by those of the fastest peer that counts, and of libjpeg's crops."""
    for n in threads:
        done = [r for r in rows if r.rates.get(n)]
        ours = [r for r in done if r.kind == "shardtool"]
        peers = [r for r in done if r.kind == "peer" and not judge(r, area)]
        floors = [r for r in done if r.kind == "floor"]
        for us in ours:
            best = sorted(peers, key=lambda r: statistics.median(r.rates[n]))[-1:]
            for other in best + floors:
                turns = [a / b for a, b in zip(us.rates[n], other.rates[n])]
                yield f"{n} core{'s' * (n > 1)}: {us.name} by {other.name}: {statistics.median(turns):.2f} ({min(turns):.2f} to {max(turns):.2f})"


def own_faults(rows, absent):
    """What is wrong with shardtool's own rows."""
    yield from (f"{name}: {reason}" for name, reason in absent.items() if name.startswith("shardtool"))
    for row in rows:
        if row.kind == "shardtool" and (row.pixels[0] > OWN_MEAN_LIMIT or row.pixels[1] > OWN_RARE_LIMIT):
            yield f"{row.name}: its pixels differ by {row.pixels[0]:.2f} in the mean, 99.9% by {row.pixels[1]:.1f}; {OWN_MEAN_LIMIT} and {OWN_RARE_LIMIT} at most"


def compare_pixels(rows, folder, crops, listing, absent):
    want = reference(os.path.join(folder, "ref"), crops)
    out = os.path.join(folder, "pixels.raw")
    for row in list(rows):
        if row.kind == "floor":
            continue
        try:
            row.fixed(listing, out)
            row.pixels = difference(out, want)
        except (Absent, RuntimeError, subprocess.SubprocessError) as e:
            absent[row.name] = "no pixels: " + str(e)
            rows.remove(row)
        print(f"pixels: {row.name}: {row.pixels or absent[row.name]}", file=sys.stderr, flush=True)


def measure(rows, threads, rounds, seconds, absent):
    """In each round each row once for each number of cores; the round begins at another row each time."""
    for turn in range(rounds):
        order = rows[turn % len(rows):] + rows[:turn % len(rows)]
        for n in threads:
            for row in order:
                if row.name in absent:
                    continue
                try:
                    rate = row.speed(n, seconds)
                except (Absent, subprocess.SubprocessError) as e:
                    absent[row.name] = str(e)
                    continue
                row.rates.setdefault(n, []).append(rate)
                print(f"round {turn + 1}, cores {n}: {row.name}: {rate:.0f}", file=sys.stderr, flush=True)
    rows[:] = [r for r in rows if r.name not in absent]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", default="")
    parser.add_argument("--pixels-only", action="store_true")
    args = parser.parse_args()
    threads = [int(n) for n in args.threads.split(",")]
    photos = os.path.join(args.folder, "photos")
    files = [os.path.join(photos, name) for name in sorted(os.listdir(photos))]
    area = expected_area(files)
    listing, seed = draw_list(args.folder, files, area)
    crops = list(work.read_list(listing))
    rows, absent = make_rows(args.folder, listing, crops, seed, [o for o in args.only.split(",") if o])
    compare_pixels(rows, args.folder, crops, listing, absent)
    if not args.pixels_only:
        measure(rows, threads, args.rounds, args.seconds, absent)
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), "")
    print(f"{len(crops)} photographs, {cpu}, {args.rounds} rounds of {args.seconds:g} s; crops drawn by torchvision's rule: {area:.0f} pixels\n")
    print(table(rows, absent, threads, area))
    if not args.pixels_only:
        print()
        for line in ratios(rows, threads, area):
            print(line)
    with open(os.path.join(args.folder, "results.json"), "w") as f:
        json.dump([{"row": r.name, "rates": r.rates, "area": r.area, "pixels": r.pixels, "unequal": judge(r, area)} for r in rows], f, indent=1)
    faults = list(own_faults(rows, absent))
    if faults:
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    main()
