//! Transactions drawn from a seed, beside the model, over every layout and order: what they see, and that those that are
//! committed have read what was there then. The simulation does the same amid crashes and faults.

use std::path::Path;

use forebay_env::{Env, Rng};
use forebay_testkit::{Config, Generator, Harness, Merging, Op, ordered_layouts};

/// Returns how many transactions wrote something, and how many conflicted.
fn run(config: Config, seed: u64, operations: usize) -> (u64, u64) {
    println!("seed {seed}, {config:?}");
    let mut rng = Rng::new(seed);
    let mut generator = Generator::new(rng.fork(), &config).transacting();
    let mut harness = Harness::new(Env::memory(rng.next_u64()), config, Path::new("/db")).unwrap();
    let mut writing = 0;
    for number in 0..operations {
        let op = generator.draw();
        let before = harness.model.last_sequence();
        harness.apply(&op).unwrap_or_else(|error| panic!("operation {number}, {op:?}: {error}"));
        let is_transaction = matches!(op, Op::Transact(..));
        writing += u64::from(is_transaction && harness.model.last_sequence() > before);
    }
    harness.apply(&Op::Reopen).unwrap();
    harness.check_all().unwrap();
    harness.apply(&Op::Verify).unwrap();
    harness.close().unwrap();
    (writing, harness.conflicts)
}

fn assert_many(came: &[(u64, u64)], writing_min: u64, conflicts_min: u64) {
    let writing: u64 = came.iter().map(|(writing, _)| writing).sum();
    let conflicts: u64 = came.iter().map(|(_, conflicts)| conflicts).sum();
    println!("{writing} were written, {conflicts} conflicted");
    assert!(writing >= writing_min && conflicts >= conflicts_min, "{came:?}");
}

#[test]
fn transactions_of_every_layout_equal_the_model() {
    let (mut seed, mut came) = (100, Vec::new());
    for ordered_layout in ordered_layouts() {
        for merging in [Merging::None, Merging::Operands, Merging::Tally] {
            seed += 1;
            let key_count = [20, 200][seed as usize % 2];
            let small = Config { ordered: true, deletes_states: true, key_count, ..Config::default() };
            let config = Config { ordered_layout, merging: [merging, Merging::None, Merging::None], ..small };
            came.push(run(config, seed, 400));
        }
    }
    assert_many(&came, 500, 50);
}

#[test]
fn transactions_of_both_orders_equal_the_model() {
    let drawn = (0..24).map(|seed| run(Config::draw(&mut Rng::new(seed)), 200 + seed, 400));
    let came: Vec<_> = drawn.collect();
    assert_many(&came, 200, 30);
}
