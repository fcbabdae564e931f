//! Series at fixed intervals: what quicgym.real.stacks.ROW_DTYPE says.

use crate::plan::{NEVER, Schedule};

/// Has the layout of ROW_DTYPE: ten fields of 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Row {
    pub time: i64,
    pub window_bytes: u64,
    pub pacing_rate: f64,
    pub smoothed_rtt: i64,
    pub in_flight_bytes: u64,
    pub delivered_bytes: u64,
    pub lost_bytes: u64,
    pub lost_packets: u64,
    pub goodput_bytes: u64,
    pub mode: i64,
}

/// One row at 0, interval, ..., duration.
pub struct Series<Entry> {
    schedule: Schedule,
    entries: Vec<Entry>,
}

impl<Entry: Copy> Series<Entry> {
    pub fn new(schedule: Schedule) -> Self {
        let count = schedule.duration / schedule.interval + 1;
        Self { schedule, entries: Vec::with_capacity(count.unsigned_abs() as usize) }
    }

    /// When the next row is due; NEVER: there are all.
    pub fn next(&self) -> i64 {
        let time = self.entries.len() as i64 * self.schedule.interval;
        if time <= self.schedule.duration { time } else { NEVER }
    }

    /// Adds the rows that are due before `end`, all as it is now: nothing has happened since the first of them.
    pub fn advance(
        &mut self,
        end: i64,
        mut entry: impl FnMut(i64) -> Result<Entry, String>,
    ) -> Result<(), String> {
        while self.next() < end {
            let made = entry(self.next())?;
            self.entries.push(made);
        }
        Ok(())
    }

    pub fn take(self) -> Vec<Entry> {
        self.entries
    }
}

/// The measurements of one flow, in the layout of FlowRecord.
pub struct Record {
    pub rows: Vec<Row>,
    pub rtt_samples: Vec<[i64; 2]>,
    pub completion: i64,
    pub compared_bytes: u64,
    pub decision_lateness: Vec<i64>,
    pub probe_timeouts: u64,
    pub persistent_congestion: u64,
}
