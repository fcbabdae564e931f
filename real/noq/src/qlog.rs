//! qlog files of the connections, as noq writes them: JSON text sequences (RFC 7464), one for each side of a flow.

use std::fs::File;
use std::io::BufWriter;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side};

/// The file of one connection, until noq takes it.
pub struct Qlog {
    file: Mutex<Option<File>>,
    title: String,
    beginning: Instant,
}

impl Qlog {
    /// Creates `flow-0-sender.sqlog` or the like in the folder.
    pub fn create(folder: &Path, flow: usize, side: &str, beginning: Instant) -> Result<Arc<Self>, String> {
        let title = format!("flow-{flow}-{side}");
        let path = folder.join(format!("{title}.sqlog"));
        let file = File::create(&path).map_err(|error| format!("qlog: {}: {error}", path.display()))?;
        Ok(Arc::new(Self { file: Mutex::new(Some(file)), title, beginning }))
    }
}

impl QlogFactory for Qlog {
    fn for_connection(
        &self,
        _side: Side,
        _remote: SocketAddr,
        _initial_dst_cid: ConnectionId,
        _now: Instant,
    ) -> Option<QlogConfig> {
        let file = self.file.lock().ok()?.take()?;
        let mut config = QlogConfig::new(Box::new(BufWriter::new(file)));
        config.title(Some(self.title.clone())).start_time(self.beginning);
        Some(config)
    }
}
