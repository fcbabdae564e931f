//! The ack-eliciting packets of the application data space that a controller was told of.
//!
//! noq's callbacks name a packet by its number alone, and each packet number space counts from 0. A
//! packet of the handshake is therefore told from others by when it was sent.

use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown, // a number that noq left out
    InFlight,
    Done,
}

#[derive(Clone, Copy)]
struct Packet {
    sent: i64,
    bytes: u16,
    state: State,
}

#[derive(Default)]
pub struct Packets {
    first: u64, // the number of the front
    packets: VecDeque<Packet>,
    in_flight_bytes: u64,
}

impl Packets {
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Returns whether it is one: a number below others is of the handshake.
    pub fn on_sent(&mut self, number: u64, sent: i64, bytes: u16) -> bool {
        if self.packets.is_empty() {
            if number < self.first {
                return false;
            }
            self.first = number;
        }
        let next = self.first + self.packets.len() as u64;
        if number < next {
            return false;
        }
        let unknown = Packet { sent, bytes: 0, state: State::Unknown };
        self.packets.extend((next..number).map(|_| unknown));
        self.packets.push_back(Packet { sent, bytes, state: State::InFlight });
        self.in_flight_bytes += u64::from(bytes);
        true
    }

    /// Returns its size, if it was in flight. `sent` is when noq says it was sent, where it does.
    pub fn take(&mut self, number: u64, sent: Option<i64>) -> Option<(i64, u16)> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let packet = self.packets.get_mut(place)?;
        if packet.state != State::InFlight || sent.is_some_and(|time| time != packet.sent) {
            return None;
        }
        packet.state = State::Done;
        let taken = (packet.sent, packet.bytes);
        self.in_flight_bytes -= u64::from(taken.1);
        while self.packets.len() > 1 && self.packets[0].state != State::InFlight {
            self.packets.pop_front();
            self.first += 1;
        }
        Some(taken)
    }
}
