//! Forebay's packed aggregator, or several between which keys are divided; and the Compressed Buffer Tree of the
//! thesis.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_aggregate::functions::Count;
use forebay_aggregate::{
    Aggregator, AggregatorOptions, BufferTreeAggregator, CompressedAggregator, Stage, Stages,
};
use forebay_base::hash::key_hash;
use rustix::time::{ClockId, clock_gettime};

use super::{Engine, Setting, each_key};
use crate::Failure;
use crate::blocks::Blocks;

/// More than there is: an aggregator should not have to make room.
const MEMORY_BYTES: usize = 16 << 30;
/// Not the one that trees order keys by.
const SEED: u64 = 1;

pub(super) struct Trees<T> {
    trees: Vec<T>,
    adders: usize,
    is_shared: bool,
    /// Adds to one by many threads.
    add_shared: fn(&T, &[u8]) -> forebay_base::Result<()>,
    adds: u64,
    /// So many adds between finalising.
    finalize_adds: u64,
    stages: Option<Arc<Stages>>,
}

impl Trees<CompressedAggregator<Count>> {
    pub(super) fn new(setting: &Setting, adds: u64) -> Result<Self, Failure> {
        let stages = stages(setting);
        let mut options = AggregatorOptions::default().memory_limit(MEMORY_BYTES).threads(setting.threads);
        if let Some(stages) = &stages {
            options = options.stages(Arc::clone(stages));
        }
        let options = options.adders(setting.adders);
        let tree = |_| CompressedAggregator::new(Count, options.clone());
        let trees = (0..setting.trees).map(tree).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            trees,
            adders: setting.adders,
            is_shared: setting.is_shared || setting.adders > 1,
            add_shared: |tree, key| tree.add(key, ()),
            adds,
            finalize_adds: adds.div_ceil(setting.finalizes),
            stages,
        })
    }
}

impl Trees<BufferTreeAggregator<Count>> {
    /// One, which divides keys itself.
    pub(super) fn thesis(setting: &Setting, adds: u64) -> Result<Self, Failure> {
        let stages = stages(setting);
        let mut shape = setting.shape.clone().threads(setting.threads).trees(setting.trees);
        if let Some(stages) = &stages {
            shape = shape.stages(Arc::clone(stages));
        }
        let trees = vec![BufferTreeAggregator::new(Count, shape)?];
        let add_shared = |_: &_, _: &[u8]| Err(forebay_base::Error::invalid("one thread adds to this tree"));
        let finalize_adds = adds.div_ceil(setting.finalizes);
        Ok(Self { trees, adders: 1, is_shared: false, add_shared, adds, finalize_adds, stages })
    }
}

/// What counts stages, where the setting asks for it: it takes some time itself.
fn stages(setting: &Setting) -> Option<Arc<Stages>> {
    let thread_time = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    setting.counts_stages.then(|| Arc::new(Stages::new(thread_time)))
}

impl<T: Aggregator<Count> + Sync> Trees<T> {
    fn finalize(&mut self) -> Result<(), Failure> {
        Ok(self.trees.iter_mut().try_for_each(Aggregator::finalize)?)
    }

    /// Adds to the first tree by several threads.
    fn add_by_all(&self, blocks: &Blocks) -> Result<(), Failure> {
        let tree = &self.trees[0];
        std::thread::scope(|scope| {
            let add = || each_key(blocks, |key| Ok((self.add_shared)(tree, key)?));
            let adders: Vec<_> = (0..self.adders).map(|_| scope.spawn(add)).collect();
            let join = |adder: std::thread::ScopedJoinHandle<'_, _>| {
                adder.join().unwrap_or_else(|_| Err("a thread that adds panicked".into()))
            };
            adders.into_iter().try_for_each(join)
        })
    }
}

impl<T: Aggregator<Count> + Sync> Engine for Trees<T> {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn add(&mut self, blocks: &Blocks) -> Result<(), Failure> {
        if self.is_shared {
            return self.add_by_all(blocks);
        }
        let (mut added, mut next) = (0, self.finalize_adds);
        each_key(blocks, |key| {
            match &mut self.trees[..] {
                [tree] => Aggregator::add(tree, key, ())?,
                trees => {
                    let at = key_hash(key, SEED) % trees.len() as u64;
                    Aggregator::add(&mut trees[at as usize], key, ())?;
                }
            }
            added += 1;
            // The last time is when all is shown.
            if added == next && added < self.adds {
                next += self.finalize_adds;
                self.finalize()?;
            }
            Ok(())
        })
    }

    fn stages(&self) -> Option<BTreeMap<String, f64>> {
        let stages = self.stages.as_ref()?;
        Some(Stage::ALL.map(|stage| (stage.name().into(), stages.of(stage).as_secs_f64())).into())
    }

    fn each(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<(), Failure> {
        self.finalize()?;
        Ok(self.trees.iter().try_for_each(|tree| show(tree, visit))?)
    }
}

/// Shows what an aggregator has counted.
pub(super) fn show(
    counts: &impl Aggregator<Count>,
    visit: &mut dyn FnMut(&[u8], u64),
) -> Result<(), forebay_base::Error> {
    counts.for_each(&mut |key, state| {
        visit(key, state.first_chunk().map_or(0, |count| u64::from_le_bytes(*count)));
        Ok(())
    })
}
