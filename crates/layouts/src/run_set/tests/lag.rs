//! Merges that lag behind writers who wait for no more than the engine has them wait.

use super::*;
use crate::simulation::Simulated;

/// Costs writers nothing: three write buffers, as of a database that is told nothing.
const FREE_BYTES: u64 = 3 * UNIT * RECORD_BYTES;

fn level_0(runs: &SimulatedRuns) -> u64 {
    runs.levels().iter().filter(|level| level.level == 0).map(|level| level.lists_max as u64).sum()
}

#[test]
fn runs_gather_while_merges_lag_behind() {
    for (policy, gathered) in [("leveling:t=10", 4), ("jungle:c=2", 8)] {
        let [mut prompt, mut late] =
            [(); 2].map(|()| simulated(policy.parse().unwrap(), Keys::DrawnFrom(30 * UNIT)));
        late.lag(FREE_BYTES);
        let (mut least, mut most, mut prompt_bytes, mut late_bytes) = (u64::MAX, 0, 0, 0);
        for flushed in 0..300 {
            prompt.flush(UNIT).unwrap();
            late.flush(UNIT).unwrap();
            late.check().unwrap();
            assert!(level_0(&prompt) <= gathered, "{policy}: all is done before the next write buffer");
            assert!(late.file_bytes() <= late.file_bytes_max(), "{policy}");
            if flushed >= 150 {
                (least, most) = (least.min(level_0(&late)), most.max(level_0(&late)));
                prompt_bytes += prompt.file_bytes();
                late_bytes += late.file_bytes();
            }
        }
        assert!(most > gathered && most < 5 * gathered, "{policy}: {least} to {most} runs in level 0");
        assert!(late_bytes > prompt_bytes * 11 / 10, "{policy}: {late_bytes} for {prompt_bytes}");
        let written = |runs: &SimulatedRuns| runs.inventory().traffic().bytes_written.iter().sum::<u64>();
        assert!(written(&late) < written(&prompt), "{policy}: longer batches are merged less often");
        let (found, all) = (late.paths().keys, (30 * UNIT) as f64);
        assert!((found / all - 1.0).abs() < 0.02, "{policy}: no key is lost: {found}");
    }
}

/// What is not merged cannot lag behind.
#[test]
fn a_table_without_merges_is_the_same_however_fast_its_writers_are() {
    let [prompt, late] = [None, Some(FREE_BYTES)].map(|free_bytes| {
        let mut runs = simulated(Policy::NoMerge, Keys::Unique);
        free_bytes.into_iter().for_each(|free_bytes| runs.lag(free_bytes));
        (0..40).for_each(|_| assert!(runs.flush(UNIT).is_ok()));
        (runs.file_bytes(), runs.file_bytes_max(), level_0(&runs))
    });
    assert_eq!(prompt, late);
}
