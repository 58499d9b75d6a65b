//! What layouts are compared for: the best comes first.

use clap::ValueEnum;
use forebay::simulate::Forecast;

/// See the module.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Goal {
    /// Records a second
    Rate,
    /// Bytes written for each that is given
    Written,
    /// Space at most, by what is there
    Space,
    /// Device reads of a lookup of a key that is there
    Reads,
    /// What one write buffer makes be rewritten, at most
    Wait,
}

impl Goal {
    /// Puts forecasts in order, the best first; among equals as they were.
    pub(super) fn rank(self, forecasts: &mut [Forecast]) {
        forecasts.sort_by(|one, other| self.cost(one).total_cmp(&self.cost(other)));
    }

    fn cost(self, Forecast { end, .. }: &Forecast) -> f64 {
        match self {
            Self::Rate => -end.times.records_per_second,
            Self::Written => end.write_amplification,
            Self::Space => end.space_amplification_peak,
            Self::Reads => end.device_reads_per_get_present,
            Self::Wait => end.burst.max,
        }
    }
}
