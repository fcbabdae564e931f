//! What is sent: streams of 1 MB, each of bytes that the receiver knows too and compares.
//!
//! noq closes a connection with more than 1,024 gaps in one stream, so one stream may not hold a large
//! window.

use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamId, VarInt, WriteError};

pub const STREAM_BYTES: u64 = 1_000_000;
const SHIFTS: u64 = 65_521; // a prime: neighbouring streams differ at every place
const AHEAD_BYTES: u64 = 4 * STREAM_BYTES;

/// Random bytes; every stream is a part of them.
#[derive(Clone)]
pub struct Content(Bytes);

impl Content {
    pub fn new() -> Self {
        // SplitMix64 (Steele, Lea and Flood 2014).
        let mut state = 0_u64;
        let mut bytes = Vec::with_capacity((STREAM_BYTES + SHIFTS) as usize + 8);
        while bytes.len() < (STREAM_BYTES + SHIFTS) as usize {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = state;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
        }
        Self(bytes.into())
    }

    /// Returns the bytes of a stream at an offset, up to its end.
    pub fn part(&self, stream: StreamId, offset: u64, length: u64) -> Option<Bytes> {
        if offset + length > STREAM_BYTES {
            return None;
        }
        let begin = (stream.index() * 4093 % SHIFTS + offset) as usize;
        Some(self.0.slice(begin..begin + length as usize))
    }
}

/// The sending application: always ahead of the transport, up to its size.
pub struct Upload {
    content: Content,
    size: Option<u64>,
    written: u64,
    stream: Option<(StreamId, u64)>, // that is being written, with how much of it
    streams: i32,
}

impl Upload {
    pub fn new(content: Content, size: Option<u64>) -> Self {
        Self { content, size, written: 0, stream: None, streams: 0 }
    }

    /// Whether all is written.
    pub fn is_complete(&self) -> bool {
        self.size == Some(self.written) && self.stream.is_none()
    }

    /// Writes as much as the transport takes. `sent_bytes` is what has been sent so far, with all overhead and
    /// repetitions: more than that is always written.
    pub fn write(&mut self, connection: &mut Connection, sent_bytes: u64) -> Result<(), String> {
        while !self.is_complete() && self.written < sent_bytes + AHEAD_BYTES {
            let (id, offset) = match self.stream {
                Some(stream) => stream,
                None => {
                    let Some(id) = connection.streams().open(Dir::Uni) else { return Ok(()) };
                    self.streams += 1;
                    // Lost data, which belong to older streams, go first.
                    let priority = connection.send_stream(id).set_priority(-self.streams);
                    priority.map_err(|error| error.to_string())?;
                    (id, 0)
                }
            };
            let left = self.size.map_or(u64::MAX, |size| size - self.written);
            let length = left.min(STREAM_BYTES - offset);
            let part = self.content.part(id, offset, length).expect("within the stream");
            let count = match connection.send_stream(id).write_chunks(&mut &mut [part][..]) {
                Ok(count) => count as u64,
                Err(WriteError::Blocked) => {
                    self.stream = Some((id, offset));
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            };
            self.written += count;
            if count < length {
                self.stream = Some((id, offset + count));
            } else {
                connection.send_stream(id).finish().map_err(|error| error.to_string())?;
                self.stream = None;
            }
        }
        Ok(())
    }
}

/// The receiving application: reads everything as it comes, and compares it.
pub struct Download {
    content: Content,
    pub received: u64, // for the first time
}

impl Download {
    pub fn new(content: Content) -> Self {
        Self { content, received: 0 }
    }

    pub fn read(&mut self, connection: &mut Connection, id: StreamId) -> Result<(), String> {
        let mut stream = connection.recv_stream(id);
        // A stream that is finished is gone; noq may tell of it once more.
        let Ok(mut chunks) = stream.read(false) else { return Ok(()) };
        // Blocked: nothing more for now. None: the stream's end.
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            let length = chunk.bytes.len() as u64;
            if self.content.part(id, chunk.offset, length).as_ref() != Some(&chunk.bytes) {
                return Err(format!(
                    "bytes {} to {} of stream {} are not those that were sent",
                    chunk.offset,
                    chunk.offset + length,
                    id.index()
                ));
            }
            self.received += length;
        }
        Ok(())
    }

    /// Takes streams that the sender has opened.
    pub fn accept(&mut self, connection: &mut Connection) -> Result<(), String> {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.read(connection, id)?;
        }
        Ok(())
    }
}

pub fn varint(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}
