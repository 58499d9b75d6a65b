"""Workloads by a seed, as `forebay advise` is asked about them and as `forebay bench` runs them."""

import dataclasses
import math
import random

RECORD_BYTES = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
DATA_BYTES = 96_000_000
RECORDS_MAX = 1_200_000
MEMORY_BYTES_MIN = 2 << 20
ROUNDS = 6
# Values of so many bytes may stand apart.
APART_BYTES = 128
# Totals are told as rates over this long.
SECONDS = 1000


@dataclasses.dataclass
class Workload:
    """`records` are loaded; then `writes` more come, mixed with gets, and ranges between them."""

    name: str
    key_bytes: int
    value_bytes: int
    records: int
    memory_bytes: int
    writes: int
    rewrites: bool
    gets: int
    ranges: int
    range_entries: int
    zipf: bool
    space: float | None = None

    @property
    def distinct(self):
        """How many keys there are in the end."""
        return self.records + (0 if self.rewrites else self.writes)

    @property
    def live_bytes(self):
        """Bytes of keys and values that are there in the end."""
        return self.distinct * (self.key_bytes + self.value_bytes)

    def advise_words(self):
        """What the user would tell."""
        words = ["--key", self.key_bytes, "--record", self.key_bytes + self.value_bytes]
        words += ["--records", self.distinct, "--memory", self.memory_bytes]
        words += ["--writes", (self.records + self.writes) / SECONDS, "--gets", self.gets / SECONDS]
        if self.rewrites:
            words += ["--rewrites", self.writes / self.records]
        if self.ranges:
            words += ["--ranges", self.ranges / SECONDS, "--range-entries", self.range_entries]
        if self.zipf:
            words += ["--keys", "zipf"]
        if self.space:
            words += ["--space", self.space]
        return [str(word) for word in words]

    def bench_toml(self, candidate):
        """The same for the bench, under a layout with its options."""
        distribution = "zipf" if self.zipf else "uniform"
        phases = ['"load"']
        mixed = self.writes + self.gets
        share = self.writes / mixed
        write = "update" if self.rewrites else "insert"
        for _ in range(ROUNDS):
            phases.append(
                f"{{ mixed = {{ {write} = {share:.9f}, read = {1 - share:.9f},"
                f' distribution = "{distribution}",'
                f" operations_per_record = {mixed / ROUNDS / self.records:.9f} }} }}"
            )
            if self.ranges:
                phases.append(
                    f"{{ range = {{ length = {self.range_entries}, distribution = \"{distribution}\","
                    f" operations_per_record = {self.ranges / ROUNDS / self.records:.9f} }} }}"
                )
        lines = [
            f'name = "{self.name}"',
            'description = "One of the workloads that advice is held against"',
            f"key_bytes = {self.key_bytes}",
            f"value_bytes = {self.value_bytes}",
            f"records = {self.records}",
            f"memory_bytes = {self.memory_bytes}",
            "batch = 100",
            f"ordered = {str(is_ordered(candidate)).lower()}",
            f"phases = [{', '.join(phases)}]",
            "[forebay]",
            f'layout = "{candidate["layout"]}"',
        ]
        if candidate.get("values_apart"):
            lines.append(f"values_apart = {candidate['values_apart']}")
        return "\n".join(lines) + "\n"

    def told(self):
        """A line for a person."""
        what = "rewrites" if self.rewrites else "inserts"
        drawn = "zipf" if self.zipf else "uniform"
        return (
            f"{self.key_bytes}+{self.value_bytes} B, {self.records:,} records and {self.writes:,} {what},"
            f" {self.gets:,} gets, {self.ranges:,} ranges of {self.range_entries}, {drawn},"
            f" memory 1/{self.live_bytes / self.memory_bytes:.0f}"
            + (f", space {self.space}" if self.space else "")
        )


def is_ordered(candidate):
    """Whether a layout keeps keys in order."""
    return candidate["layout"] != "wb-tree"


def draw(seed, number, scale):
    """The `number`-th workload of a seed."""
    rng = random.Random(seed * 1_000_003 + number)
    record = rng.choice(RECORD_BYTES)
    key = 8 if record == 16 else 16
    records = int(min(DATA_BYTES / record, RECORDS_MAX) * scale)
    rewrites = rng.random() < 0.7
    per_record = rng.choice([0.5, 1, 2]) if rewrites else rng.choice([0.25, 0.5, 1])
    writes = int(records * per_record)
    all_writes = records + writes
    gets = int(all_writes * log_uniform(rng, 0.01, 3))
    gets = min(gets, int(300_000 * scale))
    has_ranges = rng.random() < 0.5
    ranges = int(all_writes * log_uniform(rng, 0.001, 0.2)) if has_ranges else 0
    ranges = min(ranges, int(60_000 * scale))
    range_entries = rng.choice([5, 10, 30, 100])
    zipf = rng.random() < 0.4
    data = record * (records if rewrites else all_writes)
    memory = max(MEMORY_BYTES_MIN, int(data / log_uniform(rng, 4, 50)))
    return Workload(
        name=f"w{number}",
        key_bytes=key,
        value_bytes=record - key,
        records=records,
        memory_bytes=memory,
        writes=writes,
        rewrites=rewrites,
        gets=gets,
        ranges=ranges,
        range_entries=range_entries,
        zipf=zipf,
        space=rng.choice([None, None, 2.0, 3.0]),
    )


def log_uniform(rng, low, high):
    """Between the two, each tenfold as likely as another."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))
