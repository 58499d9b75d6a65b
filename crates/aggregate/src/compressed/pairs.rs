//! Adding many keys at a time: who adds looks for its own once for some of them, and asks for the memory of all these
//! before it looks at the first.

use forebay_base::Result;

use super::CompressedAggregator;
use super::stripe::TOGETHER;
use crate::aggregate::Aggregate;

impl<A: Aggregate> CompressedAggregator<A> {
    /// Adds a value to each of some keys, from any thread: as [`add`](Self::add) does one by one, for less each. Those
    /// before one that fails are added.
    pub fn add_pairs<'v>(&self, pairs: &[(&[u8], A::Input<'v>)]) -> Result<()>
    where
        A::Input<'v>: Copy,
    {
        let mut hashes = [0; TOGETHER];
        for some in pairs.chunks(TOGETHER) {
            for (hash, (key, _)) in hashes.iter_mut().zip(some) {
                *hash = self.hashing.of(key);
            }
            let mut added = 0;
            while added < some.len() {
                added += self.add_some(&some[added..], &hashes[added..some.len()])?;
            }
        }
        Ok(())
    }

    /// Adds pairs up to one, and with it, for which the thread has to make room. Returns how many.
    fn add_some<'v>(&self, pairs: &[(&[u8], A::Input<'v>)], hashes: &[u64]) -> Result<usize>
    where
        A::Input<'v>: Copy,
    {
        debug_assert_eq!(pairs.len(), hashes.len(), "a hash for each key");
        let (own, mut stripe) = self.own_stripe();
        stripe.prefetch(hashes);
        for (at, (&(key, value), &hash)) in pairs.iter().zip(hashes).enumerate() {
            if let Some(lifted) = self.take(&mut stripe, hash, key, value)? {
                return self.stage_slowly(own, stripe, hash, key, &lifted).map(|()| at + 1);
            }
        }
        Ok(pairs.len())
    }
}
