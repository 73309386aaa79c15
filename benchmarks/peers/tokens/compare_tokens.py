"""compare_tokens.py WORK ROUNDS SECONDS: see tokens.sh."""
import json, os, statistics, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["ragged", "sparse", "sequence"]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout.split("\n")[0]


def main():
    work, rounds, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    file = os.path.join(work, "tokens.tfrecord")
    peer = [sys.executable, os.path.join(HERE, "peer_tokens.py")]
    want = run(os.path.join(work, "tokens"), "sum", file)
    for variant in PEERS:
        got = run(*peer, variant, file, "sum")
        if got != want:
            raise SystemExit(f"{variant}: {got}, shardtool: {want}: not the same work")
    rates = {name: [] for name in ["shardtool", *PEERS]}
    for _ in range(rounds):
        ours = json.loads(run(os.path.join(work, "shardtool"), "bench", "--json", "--batch", "512", "--columns", "padded:input_ids:int64:512",
                              "--warmup", "2s", "--duration", seconds + "s", file))
        rates["shardtool"].append(ours["fresh_per_s"])
        for variant in PEERS:
            r = json.loads(run(*peer, variant, file, seconds))
            rates[variant].append(r["records"] / r["seconds"])
    best = max(PEERS, key=lambda p: statistics.median(rates[p]))
    for name, r in rates.items():
        print(f"{name:12} {statistics.median(r):12,.0f} records/s ({min(r):,.0f} to {max(r):,.0f})")
    ratios = [a / b for a, b in zip(rates["shardtool"], rates[best])]
    print(f"shardtool is {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) times as fast as tf.data, {best}")


main()
