//! Pacing as the C interface has it: the time between packets is their size over the rate.
//!
//! noq's own pacer lets up to ten packets leave at once after a pause. It stays in force, and is the only one for noq's
//! own controllers.

/// In real time a thread that waits for its next packet wakes up late. So much of what it has missed may be made up for:
/// without, BBR loses some percent of its goodput.
pub const LATE_CREDIT: i64 = 2_000_000;

pub struct Pacer {
    next_send: i64,
    credit: i64,
    is_waiting: bool,
}

impl Pacer {
    pub fn new(credit: i64) -> Self {
        Self { next_send: 0, credit, is_waiting: false }
    }

    /// When the next packet may leave, where the pacer alone holds it back.
    pub fn next_send(&self) -> Option<i64> {
        self.is_waiting.then_some(self.next_send)
    }

    /// Whether a packet that is ready has to wait.
    pub fn holds_back(&mut self, now: i64) -> bool {
        if self.next_send > now {
            self.is_waiting = true;
        }
        self.next_send > now
    }

    /// There is no packet: what the window or the application holds back has nothing to make up for.
    pub fn on_nothing_to_send(&mut self) {
        self.is_waiting = false;
    }

    /// `rate` is in bytes per second.
    pub fn on_sent(&mut self, now: i64, bytes: u64, rate: f64) {
        let time = (bytes as f64 * 1e9 / rate).round() as i64;
        let earliest = if self.is_waiting { now - self.credit } else { now };
        self.next_send = self.next_send.max(earliest).saturating_add(time);
    }
}
