//! The buffer tree against a model, over fragments in memory.

#[cfg(test)]
mod amplification;
#[cfg(test)]
mod counted;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod model;
#[cfg(test)]
mod random;
#[cfg(test)]
mod splits;
