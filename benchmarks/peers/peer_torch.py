"""torch's DataLoader over webdataset, with torchvision's transforms on Pillow's images and on tensors."""
import io

import numpy as np
import torch
import webdataset
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

import work

torch.set_num_threads(1)
SIZE = [work.SIZE, work.SIZE]


def decode_pillow(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def decode_tensor(data):
    return decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)


class Crop(v2.RandomResizedCrop):
    """It with the area of what was drawn last."""

    def make_params(self, inputs):
        params = super().make_params(inputs)
        self.area = params["height"] * params["width"]
        return params


FINISH = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(work.MEAN, work.STD)])


def variant(decode):
    crop, flip = Crop(work.SIZE, scale=work.SCALE, ratio=work.RATIO, antialias=True), v2.RandomHorizontalFlip()

    def load(sample):
        pixels = FINISH(flip(crop(decode(sample[0]))))
        return pixels, crop.area

    def speed(folder, threads):
        records = webdataset.WebDataset(work.shards(folder, ".tar"), shardshuffle=False).repeat().to_tuple("jpg").map(load)
        workers = threads if threads > 1 else 0
        for batch, areas in torch.utils.data.DataLoader(records, batch_size=work.BATCH, num_workers=workers):
            yield batch, areas.sum()

    def fixed(crops):
        for x, y, w, h, file in crops:
            with open(file, "rb") as f:
                pixels = v2.functional.resized_crop(decode(f.read()), y, x, h, w, SIZE, antialias=True)
            yield np.ascontiguousarray(FINISH(pixels).numpy())

    return speed, fixed


VARIANTS = {"pillow": variant(decode_pillow), "tensor": variant(decode_tensor)}

if __name__ == "__main__":
    work.main(VARIANTS)
