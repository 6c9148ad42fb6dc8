#!/usr/bin/env python3
"""A small, real training run on a CUDA GPU: a language model on random tokens.

Needs PyTorch with CUDA and an NVIDIA GPU (`pip install torch`). It uses the GPUs it is given by
CUDA_VISIBLE_DEVICES, as any program does: there is nothing of Berth in it. With several GPUs it
splits each batch over them.

    python3 examples/train.py --width 1024 --layers 12 --batch 32 --steps 300

prints the loss, and at the end what it really needed of VRAM: the number for `[vram=...]`.
CUDA's own context comes on top (some hundred MiB); the line that `berth run` prints at the end
of a job, and `berth show`, count it in.
"""
import argparse
import os
import signal
import sys
import time


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--width", type=int, default=512)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--vocabulary", type=int, default=32000)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--checkpoint", help="save here at the end and when told to stop; resume from it")
    return p.parse_args()


def build_model(torch, args):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(args.vocabulary, args.width)
            self.places = nn.Embedding(args.context, args.width)
            layer = nn.TransformerEncoderLayer(args.width, max(1, args.width // 64), 4 * args.width,
                                               dropout=0.0, batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, args.layers, enable_nested_tensor=False)
            self.head = nn.Linear(args.width, args.vocabulary)

        def forward(self, x):
            n = x.shape[1]
            mask = nn.Transformer.generate_square_subsequent_mask(n, device=x.device)
            h = self.tokens(x) + self.places(torch.arange(n, device=x.device))
            return self.head(self.body(h, mask=mask, is_causal=True))

    return Model()


def main():
    args = parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("train.py: needs PyTorch: pip install torch")
    if not torch.cuda.is_available():
        sys.exit("train.py: needs an NVIDIA GPU that PyTorch can use, and sees none "
                 f"(CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')})")

    torch.manual_seed(args.seed)
    gpus = torch.cuda.device_count()
    model = build_model(torch, args).cuda()
    parallel = torch.nn.DataParallel(model) if gpus > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    first = 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint, map_location="cuda")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters on {gpus} x "
          f"{torch.cuda.get_device_name()}, from step {first}", flush=True)

    # TERM comes before KILL, at a cancel and at the time limit: time to save.
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))

    step, began = first, time.monotonic()
    while step < args.steps and not stop:
        x = torch.randint(args.vocabulary, (args.batch, args.context + 1), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = parallel(x[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), x[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 20 == 0 or step == args.steps:
            rate = (step - first) / (time.monotonic() - began)
            print(f"step {step}  loss {loss.item():.3f}  {rate:.1f} steps/s", flush=True)

    if args.checkpoint:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
                   args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)
    for i in range(gpus):
        print(f"cuda:{i} needed {torch.cuda.max_memory_reserved(i) / 2**20:.0f} MiB at most")
    return 143 if stop else 0


if __name__ == "__main__":
    sys.exit(main())
