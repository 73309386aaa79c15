"""The work that every row does, and how it is measured: RandomResizedCrop to 224 (scale 0.08 to 1, ratio 3/4 to 4/3,
antialiased bilinear), horizontal flip with 0.5, normalisation, float32 NCHW, batches of 64.

A peer is a file peer_NAME.py with VARIANTS, name -> (speed, fixed):

    speed(folder, threads)  yields, for each batch, (array or tensor of the batch, sum of the areas of its crops in pixels)
    fixed(crops)            yields float32 [3, 224, 224] for each (x, y, w, h, file), by the same calls, without flip

and is run as

    peer_NAME.py VARIANT speed FOLDER THREADS SECONDS   prints {"images":..., "seconds":..., "area":...}
    peer_NAME.py VARIANT fixed LIST OUT                 writes OUT, raw float32 of the machine

FOLDER holds photos-*.tar and photos-*.tfrecord, each with its .idx, which are read again and again.
"""
import glob, json, math, os, random, sys, time

SIZE, BATCH = 224, 64
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WARMUP = 2.0


def draw_crop(rng, width, height):
    """x, y, w, h as torchvision's RandomResizedCrop.get_params draws them."""
    for _ in range(10):
        area = width * height * rng.uniform(*SCALE)
        aspect = math.exp(rng.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return rng.randint(0, width - w), rng.randint(0, height - h), w, h
    w, h = width, height
    if width / height < RATIO[0]:
        h = round(width / RATIO[0])
    elif width / height > RATIO[1]:
        w = round(height * RATIO[1])
    return (width - w) // 2, (height - h) // 2, w, h


def shards(folder, suffix):
    return sorted(glob.glob(os.path.join(folder, "photos-*" + suffix)))


def read_list(path):
    with open(path) as f:
        for line in f:
            x, y, w, h, file = line.split(maxsplit=4)
            yield int(x), int(y), int(w), int(h), file.strip()


def measure(batches, seconds):
    """Counts the batches that end within the time, from the end of one to the end of another, after a warm-up."""
    batches = iter(batches)
    until = time.monotonic() + WARMUP
    while time.monotonic() < until:
        next(batches)
    begun = ended = time.monotonic()
    images, area = 0, 0.0
    while ended - begun < seconds:
        batch, crops = next(batches)
        ended = time.monotonic()
        images += len(batch)
        area += float(crops)
    return {"images": images, "seconds": ended - begun, "area": area / images}


def processes(speed, folder, threads, seconds):
    """Measures as many processes at a time, each of which runs speed with a seed of its own, and adds them up."""
    import multiprocessing

    pool = multiprocessing.get_context("fork")
    results = pool.Queue()

    def one(seed):
        random.seed(seed)
        results.put(measure(speed(folder, 1), seconds))

    workers = [pool.Process(target=one, args=(i,)) for i in range(threads)]
    for w in workers:
        w.start()
    parts = [results.get() for _ in workers]
    for w in workers:
        w.join()
    images = sum(p["images"] for p in parts)
    rate = sum(p["images"] / p["seconds"] for p in parts)
    return {"images": images, "seconds": images / rate, "area": sum(p["area"] * p["images"] for p in parts) / images}


def main(variants, by_process=False):
    """by_process: more than one thread are so many processes."""
    speed, fixed = variants[sys.argv[1]]
    if sys.argv[2] == "speed":
        folder, threads, seconds = sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
        result = processes(speed, folder, threads, seconds) if by_process else measure(speed(folder, threads), seconds)
        print(json.dumps(result), flush=True)
        os._exit(0)  # not after what endless pipelines still have to say
    with open(sys.argv[4], "wb") as out:
        for array in fixed(list(read_list(sys.argv[3]))):
            if array.shape != (3, SIZE, SIZE) or str(array.dtype) != "float32":
                raise SystemExit(f"an array of {array.dtype} {array.shape}")
            out.write(array.tobytes())
    os._exit(0)
