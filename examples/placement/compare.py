"""The setting in which veGiantModel was announced, as `isthmus place` sees it.

    python3 examples/placement/compare.py [path of the isthmus program]

Prints bytes and predicted seconds of a step of our placement, of Megatron's t4 p4 and of ZeRO
stage 3, on the two clusters of the announcement and on each with the other's network: what a
network costs is read within one kind of device.
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
CLUSTERS = ("v100-100gbit", "a100-800gbit")
NETWORKS = ("100gbit", "800gbit")
MEGATRON = "tensor=4,data=2,pipe=4"


def compare(program, cluster, network):
    """The answer of `place compare` as a dictionary."""
    words = [program, "place", "compare", "--json", "--model", HERE / "gpt-13b.json",
             "--job", HERE / "job.json", "--topology", HERE / f"{cluster}.json", "--rate", network,
             "--axes", "tensor,data,pipe", "--beside", MEGATRON]
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True,
                          text=True, timeout=120)
    return json.loads(done.stdout)


def rows_of(answer):
    """Name, bytes of the dearest node, passes and seconds of the programs that are shown."""
    degrees = " ".join(f"{axis[0]}{ways}" for axis, ways in answer["degrees"].items() if ways > 1)
    predicted = answer["predicted"]
    yield (f"placed ({degrees})", predicted["max_node_egress"],
           predicted["pipeline"]["micro_batches"], predicted["step_seconds"])
    for each in answer["programs"]:
        if each["name"].startswith("Megatron") or each["name"].startswith(("ZeRO stage 3", "HSDP")):
            yield (each["name"].replace("Megatron " + "tensor 4, data 2, pipe 4", "Megatron t4 d2 p4"),
                   each["max_node_egress"], each["micro_steps"], each["step_seconds"])


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "isthmus"
    for cluster in CLUSTERS:
        seconds = {}
        for network in NETWORKS:
            answer = compare(program, cluster, network)
            print(f"\n{cluster.split('-')[0].upper()}, 4 hosts of 8, {network} a host")
            print(f"{'program':<32}{'GB out of a host':>18}{'micro-steps':>13}{'step s':>9}")
            for name, egress, steps, step in rows_of(answer):
                print(f"{name:<32}{egress / 1e9:>18.2f}{steps:>13}{step:>9.2f}")
                seconds.setdefault(name.split(" (")[0], []).append(step)
        for name, (slow, fast) in seconds.items():
            print(f"{name}: the slower network makes a step {slow / fast:.2f} times as long")
    print("\nassumed")
    for each in answer["predicted"]["assumed"]:
        print("-", each)
    print("- see", HERE / "README.md", "for the sources of the rest")


if __name__ == "__main__":
    main()
