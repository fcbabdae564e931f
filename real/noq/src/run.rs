//! What one run gives all its senders and receivers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::content::Content;
use crate::library::Library;
use crate::moments::Moments;
use crate::peer::Peer;
use crate::plan::{Flow, Schedule};
use crate::qlog::Qlog;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::tls::Tls;

pub struct Run {
    pub tls: Tls,
    pub content: Content,
    pub library: Arc<Library>,
    pub moments: Moments,
    pub schedule: Schedule,
    pub late_credit: i64, // of pacing, see Pacer
    pub qlog_folder: Option<PathBuf>,
}

impl Run {
    /// The two sides of a flow, each with the address of the other.
    pub fn pair(
        &self,
        number: usize,
        flow: &Flow,
        receivers_address: SocketAddr,
        senders_address: SocketAddr,
    ) -> Result<(Sender, Receiver), String> {
        let client = Peer::client(flow, self.moments, receivers_address)?;
        let server = Peer::server(flow, self, self.qlog(number, "receiver")?, senders_address)?;
        let sender = Sender::new(flow, self, client, self.qlog(number, "sender")?);
        Ok((sender, Receiver::new(flow, self, server)))
    }

    fn qlog(&self, flow: usize, side: &str) -> Result<Option<Arc<Qlog>>, String> {
        let create = |folder: &PathBuf| Qlog::create(folder, flow, side, self.moments.at(0));
        self.qlog_folder.as_ref().map(create).transpose()
    }
}
