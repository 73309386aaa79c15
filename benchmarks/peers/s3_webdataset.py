"""s3_webdataset.py INPUT: webdataset's way to S3, a program that pipes each object, and torch's loader with as many processes as there may
be connections. Reads all tars once and delivers batches of 64 samples' bytes. INPUT and what is printed: benchmarks/s3/main.go."""
import json, os, shlex, sys, time

import torch
import webdataset


def main():
    torch.set_num_threads(1)
    with open(sys.argv[1]) as f:
        told = json.load(f)
    pipes = ["pipe:curl -sSf " + shlex.quote(address) for address in told["tars"]]
    data = webdataset.WebDataset(pipes, shardshuffle=False).to_tuple("bin").batched(64, partial=True)
    begun = time.monotonic()
    samples = size = 0
    for (batch,) in webdataset.WebLoader(data, batch_size=None, num_workers=told["connections"]):
        samples += len(batch)
        size += sum(map(len, batch))
    print(json.dumps({"of": "tars", "samples": samples, "bytes": size, "seconds": time.monotonic() - begun}), flush=True)


main()
