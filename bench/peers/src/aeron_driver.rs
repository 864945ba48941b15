//! The media driver of an Aeron end: its settings, its folder in shared memory, and the client that talks to it.
//!
//! Called by [`crate::aeron_end`], which has one for as long as it lives.
//!
//! ```text
//! this process:   the end's thread <-- log buffers --> the driver's thread <-- UDP --> the other process
//! ```
//!
//! Invariant: the folder is this process's alone and goes with it; one that a killed end has left goes with the next.

use crate::options::Options;
use anyhow::{Context as _, Result, anyhow};
use rusteron_client::{Aeron, AeronContext, IntoCString as _};
use rusteron_media_driver::bindings::aeron_threading_mode_t;
use rusteron_media_driver::{AeronDriver, AeronDriverContext};
use socket2::{Domain, Socket, Type};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Where shared memory is a file system; without it the system's temporary files have to do.
const SHARED_MEMORY: &str = "/dev/shm";
/// What the folders of all ends are called, with the process's number behind it.
const PREFIX: &str = "segstream-peers-aeron-";

/// The header before the payload of a datagram.
pub(crate) const HEADER_BYTES: usize = 32;
/// Frames lie at multiples of it, so datagrams are as long.
const ALIGNMENT_BYTES: u16 = 32;
/// The library's own default; its longest is the largest multiple that fits a datagram.
const DATAGRAM_BYTES: u16 = 1408;
const DATAGRAM_BYTES_MAX: u16 = 65504;
/// One of the three parts of a log; a message may be an eighth of it.
const TERM_BYTES: usize = 64 << 20;
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Datagrams that a system call takes, here and there: the most that the library allows.
const BATCH: u32 = 16;
/// Repetitions that may be under way: the most that the library allows, which is what it recommends for lossy paths.
const RESENDS: u32 = 256;

/// A driver that runs on a thread of its own, and a client of it.
pub(crate) struct Driver {
    // In this order they end: the driver serves the client to its end, and writes in the folder to its own.
    pub(crate) client: Aeron,
    _driver: AeronDriver,
    _folder: Folder,
    failure: Arc<OnceLock<String>>,
}

impl Driver {
    /// Starts both.
    pub(crate) fn start(options: &Options) -> Result<Self> {
        let folder = Folder::make()?;
        // The library makes this one itself and wants to find nothing there.
        let inside = folder.0.join("driver").to_string_lossy().into_owned().into_c_string();
        let settings = AeronDriverContext::new()?;
        settings.set_dir(&inside)?;
        settings.set_dir_delete_on_shutdown(true)?;
        settings.set_threading_mode(aeron_threading_mode_t::AERON_THREADING_MODE_SHARED)?;
        settings.set_shared_idle_strategy(if options.spin { c"yield" } else { c"backoff" })?;
        settings.set_mtu_length(datagram_bytes(options))?;
        settings.set_term_buffer_length(TERM_BYTES)?;
        // Pages that are there before the first byte are no part of what is measured.
        settings.set_term_buffer_sparse_file(false)?;
        settings.set_socket_so_rcvbuf(SOCKET_BUFFER_BYTES)?;
        settings.set_socket_so_sndbuf(SOCKET_BUFFER_BYTES)?;
        // A window larger than the socket's buffer is refused.
        settings.set_rcv_initial_window_length((options.window_bytes as usize).min(granted_bytes()?))?;
        settings.set_receiver_io_vector_capacity(BATCH)?;
        settings.set_sender_io_vector_capacity(BATCH)?;
        settings.set_network_publication_max_messages_per_send(BATCH)?;
        settings.set_max_resend(RESENDS)?;
        settings.set_reliable_stream(true)?;
        let driver = AeronDriver::new(&settings).map_err(|error| anyhow!("the media driver cannot be made: {error}"))?;
        driver.start(false).map_err(|error| anyhow!("the media driver cannot be started: {error}"))?;

        let failure = Arc::new(OnceLock::new());
        let context = AeronContext::new()?;
        context.set_dir(&inside)?;
        context.set_pre_touch_mapped_memory(true)?;
        let told = Arc::clone(&failure);
        // Without a handler of ours the library ends the process, with nothing said on standard output.
        context.set_error_handler(Some(move |code: i32, text: &str| {
            let _ = told.set(format!("{text} ({code})"));
        }))?;
        let client = Aeron::new(&context).map_err(|error| anyhow!("the media driver cannot be reached: {error}"))?;
        client.start()?;
        Ok(Self { client, _driver: driver, _folder: folder, failure })
    }

    /// An error if the library has complained.
    pub(crate) fn alive(&self) -> io::Result<()> {
        self.failure.get().map_or(Ok(()), |failure| Err(io::Error::other(format!("the media driver has failed: {failure}"))))
    }
}

/// The payload of a UDP datagram, header included.
pub(crate) fn datagram_bytes(options: &Options) -> usize {
    let wanted = options.datagram_bytes.unwrap_or(DATAGRAM_BYTES).min(DATAGRAM_BYTES_MAX);
    usize::from(wanted - wanted % ALIGNMENT_BYTES)
}

/// How large a receive buffer the system gives when it is asked for [`SOCKET_BUFFER_BYTES`].
fn granted_bytes() -> Result<usize> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    Ok(socket.recv_buffer_size()?)
}

/// A folder in shared memory that is deleted when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Self> {
        let shared = Path::new(SHARED_MEMORY);
        let parent = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        sweep(&parent);
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The driver has deleted most of it; what cannot be deleted is swept by the next end.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Deletes what killed ends have left in `parent`: shared memory stays until somebody does.
fn sweep(parent: &Path) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|number| number.parse::<u32>().ok());
        if process.is_some_and(|process| !processes.join(process.to_string()).exists()) {
            // Another end may be deleting it too, or it is another user's.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_process_that_is_gone_is_deleted_and_no_other() {
        let parent = std::env::temp_dir().join(format!("segstream-peers-sweep-{}", std::process::id()));
        // Linux numbers processes up to 4194304.
        let [gone, here, foreign] =
            [format!("{PREFIX}4200000"), format!("{PREFIX}{}", std::process::id()), "aeron-root".to_owned()].map(|name| parent.join(name));
        for folder in [&gone, &here, &foreign] {
            std::fs::create_dir_all(folder).unwrap();
        }
        sweep(&parent);
        let left = [&gone, &here, &foreign].map(|folder| folder.exists());
        std::fs::remove_dir_all(&parent).unwrap();
        assert_eq!(left, [false, true, true]);
    }
}
