//! Pacing as the C interface has it: the time between packets is their size over the rate.
//!
//! noq's own pacer lets up to ten packets leave at once after a pause. It stays in force, and is the only one for noq's
//! own controllers.

/// In real time a thread wakes up late. So much of what it has missed may be made up for: without, BBR loses some
/// percent of its goodput.
pub const LATE_CREDIT: i64 = 2_000_000;

pub struct Pacer {
    next_send: i64,
    credit: i64,
}

impl Pacer {
    pub fn new(credit: i64) -> Self {
        Self { next_send: 0, credit }
    }

    pub fn next_send(&self) -> i64 {
        self.next_send
    }

    /// `rate` is in bytes per second.
    pub fn on_sent(&mut self, now: i64, bytes: u64, rate: f64) {
        let time = (bytes as f64 * 1e9 / rate).round() as i64;
        self.next_send = self.next_send.max(now - self.credit).saturating_add(time);
    }
}
