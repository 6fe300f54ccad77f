"""The torch examples give over isthmus what they give over gloo and in one process.

usage: check_torch.py BUILD ISTHMUS"""

import re
import sys

import programs

ITERS, CHECKPOINT = 9, 5


def train(start, ranks, out_dir, *settings):
    """Losses and norms of gradients by step."""
    common = [f"--iters={ITERS}", "--gradient_accumulation_steps=4", "--batch_size=4",
              f"--checkpoint_interval={CHECKPOINT}", "--eval_interval=5", f"--out_dir={start.folder}/{out_dir}"]
    if ranks == 1:
        output = start.run(sys.executable, programs.EXAMPLES / "train_ddp.py", *common, *settings)
    else:
        output = start.ranks(ranks, "train_ddp.py", *common, *settings)
    steps = re.findall(r"iter (\d+) loss (\S+) norm (\S+)", output)
    return {int(step): (float(loss), float(norm)) for step, loss, norm in steps}


def expect_near(found, expected, relative):
    assert found.keys() == expected.keys() == set(range(ITERS)), (found, expected)
    for step, values in found.items():
        for ours, theirs in zip(values, expected[step]):
            assert abs(ours - theirs) <= relative * abs(theirs), (step, ours, theirs)


def ddp_training(start):
    """U1: losses of gloo, of one process, and of a resumed run."""
    alone = train(start, 1, "alone")
    assert alone[ITERS - 1][0] < 0.9 * alone[0][0], alone
    over_gloo = train(start, 2, "gloo", "--backend=gloo")
    # Rank 0 evaluates for two seconds more while the other waits at its next backward pass.
    over_isthmus = train(start, 2, "isthmus", "--eval_sleep=2")
    expect_near(over_isthmus, over_gloo, 1e-5)
    # Other sums in another order: single precision, some steps of Adam.
    expect_near(over_isthmus, alone, 1e-3)
    # Step 0 has seen no optimizer yet: the gradient itself, of the joined batch.
    for ours, theirs in zip(over_isthmus[0], alone[0]):
        assert abs(ours - theirs) <= 1e-5 * theirs, (over_isthmus[0], alone[0])
    # The checkpoint is the one before step CHECKPOINT; what follows it is the same to the last bit.
    rest = train(start, 2, "isthmus", "--init_from=resume")
    assert rest == {step: over_isthmus[step] for step in range(CHECKPOINT, ITERS)}, (rest, over_isthmus)


def experts(start):
    """U3: outputs and gradients of a dense reference, with splits that change at each step."""
    output = start.ranks(4, "moe.py", "--load=one,empty,capacity,balanced", "--steps=200")
    loads = re.findall(r"4 ranks, (\w+): difference (\S+) growth (\S+) MB", output)
    assert [load for load, _, _ in loads] == ["one", "empty", "capacity", "balanced"], output
    for load, difference, growth in loads:
        assert float(difference) < 1e-9, (load, output)
        # One tensor of 512 x 64 doubles left by each of the last 150 steps would be 38 MB.
        assert float(growth) < 35, (load, output)


if __name__ == "__main__":
    build, isthmus = sys.argv[1:]
    sys.exit(programs.run_cases([ddp_training, experts], build, isthmus))
