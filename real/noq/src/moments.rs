//! The stack counts in `Instant`s, quicgym in ns from the scenario's beginning.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub struct Moments {
    beginning: Instant,
}

impl Moments {
    pub fn from(beginning: Instant) -> Self {
        Self { beginning }
    }

    pub fn at(&self, time: i64) -> Instant {
        self.beginning + Duration::from_nanos(time.max(0).unsigned_abs())
    }

    pub fn of(&self, instant: Instant) -> i64 {
        to_ns(instant.saturating_duration_since(self.beginning))
    }
}

pub fn to_ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
