//! Where the data comes from: a file, or a pipe that gives what it has when it has it.
//!
//! Called by the file queue. A file is read by the caller, whose network is not served meanwhile, so a segment at a time;
//! a pipe is read by a thread of its own, because it may keep silent for ever; the thread starts with the first call.
//!
//! Invariant: a source gives every byte once and in order, or says what went wrong.

use rustix::fs::OFlags;
use segstream::{Bytes, Clock};
use segstream_base::{Duration, Instant};
use segstream_net::Waker;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

/// Bytes a pipe's thread reads at a time.
const PIPE_READ_BYTES: usize = 64 * 1024;
/// Reads of a pipe that wait for the file queue; then the pipe's writer has to wait.
const PIPE_READS_WAITING: usize = 16;

/// What a source gives next.
#[derive(Debug)]
pub(super) enum Next {
    /// A segment, and when its first byte was there.
    Segment(Vec<u8>, Instant),
    /// A segment that was given before and not taken.
    Held(Bytes, Instant),
    /// Nothing yet; the waker wakes when there is more, and the time is when a segment is due anyway.
    Pending(Option<Instant>),
    /// The end.
    End,
    /// It cannot be read any further.
    Failed(String),
}

/// A file or a pipe.
#[derive(Debug)]
pub(super) enum Source {
    /// A regular file.
    File(FileSource),
    /// Anything that has to be waited for.
    Pipe(PipeSource),
}

/// A regular file.
#[derive(Debug)]
pub(super) struct FileSource {
    file: File,
    name: String,
    expected: u64,
    read: u64,
}

/// A pipe, a terminal, a device.
#[derive(Debug)]
pub(super) struct PipeSource {
    arrived: Receiver<io::Result<(Vec<u8>, Instant)>>,
    /// The thread that reads, until the first call starts it.
    reader: Option<Reader>,
    name: String,
    wait: Duration,
    buffer: Vec<u8>,
    /// When the first byte in the buffer came.
    first: Instant,
    /// Whether it ends when nothing is there.
    ending: bool,
    ended: bool,
    failed: Option<String>,
}

/// A thread that has not been started.
struct Reader(Box<dyn FnOnce() + Send>);

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl Source {
    /// Opens a file. What is not a regular file is read like a pipe.
    pub(super) fn open(path: &Path, is_found: bool, wait: Duration, clock: Clock, waker: &Waker) -> Result<Self, String> {
        let name = path.display().to_string();
        let metadata = std::fs::metadata(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
        if !metadata.is_file() && !is_found {
            let path = path.to_owned();
            return Ok(Self::Pipe(PipeSource::new(name, wait, clock, waker, move || File::open(path))));
        }
        let (file, expected) = open_file(path, is_found)?;
        Ok(Self::File(FileSource { file, name, expected, read: 0 }))
    }

    /// Standard input.
    pub(super) fn standard_input(wait: Duration, clock: Clock, waker: &Waker) -> Self {
        Self::Pipe(PipeSource::new("standard input".to_owned(), wait, clock, waker, || Ok(io::stdin())))
    }

    /// Whether every segment but the last is as long as asked for.
    pub(super) const fn has_even_segments(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// A pipe ends with what has been read of it; a file is not affected.
    pub(super) fn end_pipe(&mut self) {
        if let Self::Pipe(pipe) = self {
            pipe.ending = true;
        }
    }

    /// The next segment of at most `segment_bytes` bytes.
    pub(super) fn next(&mut self, now: Instant, segment_bytes: usize) -> Next {
        match self {
            Self::File(file) => file.next(now, segment_bytes),
            Self::Pipe(pipe) => pipe.next(now, segment_bytes),
        }
    }
}

/// Opens a regular file; one that was found in a directory is not a link. Its length.
pub(super) fn open_file(path: &Path, is_found: bool) -> Result<(File, u64), String> {
    let flags = if is_found { OFlags::NOFOLLOW | OFlags::NONBLOCK } else { OFlags::empty() };
    let opened = File::options().read(true).custom_flags(flags.bits() as i32).open(path);
    let opened = opened.and_then(|file| Ok((file.metadata()?, file)));
    match opened {
        Ok((metadata, file)) if metadata.is_file() => Ok((file, metadata.len())),
        Ok(_) => Err(format!("{} is no longer a file", path.display())),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

impl FileSource {
    /// Begins anew at `offset`.
    pub(super) fn go_to(&mut self, offset: u64) -> Result<(), String> {
        self.read = offset;
        self.file.seek(SeekFrom::Start(offset)).map(drop).map_err(|error| format!("{} cannot be read: {error}", self.name))
    }

    /// How far it is read.
    pub(super) const fn read_bytes(&self) -> u64 {
        self.read
    }

    /// The next segment of at most `segment_bytes` bytes.
    pub(super) fn next(&mut self, now: Instant, segment_bytes: usize) -> Next {
        let mut segment = Vec::with_capacity(segment_bytes);
        match (&mut self.file).take(segment_bytes as u64).read_to_end(&mut segment) {
            Err(error) => Next::Failed(format!("{} cannot be read: {error}", self.name)),
            Ok(0) if self.read < self.expected => Next::Failed(format!(
                "{} became shorter while it was read: {} bytes of {} are gone",
                self.name,
                self.expected - self.read,
                self.expected
            )),
            Ok(0) => Next::End,
            Ok(count) => {
                self.read += count as u64;
                Next::Segment(segment, now)
            }
        }
    }
}

impl PipeSource {
    fn new<R: Read>(
        name: String,
        wait: Duration,
        clock: Clock,
        waker: &Waker,
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> Self {
        let (sender, arrived) = sync_channel(PIPE_READS_WAITING);
        let waker = waker.clone();
        let reader = Reader(Box::new(move || {
            match open() {
                Ok(pipe) => read_all(pipe, clock, &sender, &waker),
                Err(error) => drop(sender.send(Err(error))),
            }
            drop(sender);
            waker.wake();
        }));
        let (buffer, first) = (Vec::new(), Instant::ZERO);
        Self { arrived, reader: Some(reader), name, wait, buffer, first, ending: false, ended: false, failed: None }
    }

    fn next(&mut self, now: Instant, segment_bytes: usize) -> Next {
        if let Some(Reader(read)) = self.reader.take() {
            // Why only now: its wakes would end the set-up of the connection. Why detached: a read that never returns must
            // not keep the process.
            std::thread::spawn(read);
        }
        while self.buffer.len() < segment_bytes && !self.ended {
            match self.arrived.try_recv() {
                Ok(Ok((bytes, at))) => {
                    if self.buffer.is_empty() {
                        self.first = at;
                    }
                    self.buffer.extend_from_slice(&bytes);
                }
                Ok(Err(error)) => {
                    self.failed = Some(format!("{} cannot be read: {error}", self.name));
                    self.ended = true;
                }
                Err(TryRecvError::Disconnected) => self.ended = true,
                Err(TryRecvError::Empty) if self.ending => self.ended = true,
                Err(TryRecvError::Empty) => break,
            }
        }
        if self.buffer.is_empty() {
            return match (self.ended, self.failed.take()) {
                (_, Some(sentence)) => Next::Failed(sentence),
                (true, None) => Next::End,
                (false, None) => Next::Pending(None),
            };
        }
        let due = self.first + self.wait;
        if self.buffer.len() < segment_bytes && !self.ended && now < due {
            return Next::Pending(Some(due));
        }
        let rest = self.buffer.split_off(self.buffer.len().min(segment_bytes));
        let first = self.first;
        // Limit: what is left has come with the last read; its own time would differ by less than a read takes.
        self.first = now;
        Next::Segment(std::mem::replace(&mut self.buffer, rest), first)
    }
}

fn read_all(mut pipe: impl Read, clock: Clock, sender: &SyncSender<io::Result<(Vec<u8>, Instant)>>, waker: &Waker) {
    let mut buffer = vec![0; PIPE_READ_BYTES];
    loop {
        let message = match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => Ok((buffer.get(..count).unwrap_or(&[]).to_vec(), clock.now())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = message.is_err();
        if sender.send(message).is_err() || failed {
            return;
        }
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe(bytes: &'static [u8], wait: Duration) -> PipeSource {
        let (waker, _listener) = segstream_net::wake::pair().unwrap();
        PipeSource::new("a pipe".into(), wait, Clock::start(), &waker, move || Ok(bytes))
    }

    fn settled(pipe: &mut PipeSource, now: Instant, segment_bytes: usize) -> Next {
        loop {
            match pipe.next(now, segment_bytes) {
                Next::Pending(_) => std::thread::yield_now(),
                next => return next,
            }
        }
    }

    #[test]
    fn a_pipe_is_cut_into_full_segments_and_a_rest() {
        let mut pipe = pipe(b"0123456789", Duration::from_secs(1000));
        for expected in [&b"0123"[..], b"4567", b"89"] {
            assert!(matches!(settled(&mut pipe, Instant::ZERO, 4), Next::Segment(bytes, _) if bytes == expected));
        }
        assert!(matches!(settled(&mut pipe, Instant::ZERO, 4), Next::End));
    }

    #[test]
    fn what_came_from_a_pipe_leaves_when_it_has_waited_long_enough() {
        let (sender, arrived) = sync_channel(4);
        let wait = Duration::from_millis(20);
        let mut pipe = PipeSource {
            arrived,
            reader: None,
            name: "a pipe".into(),
            wait,
            buffer: Vec::new(),
            first: Instant::ZERO,
            ending: false,
            ended: false,
            failed: None,
        };
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert!(matches!(pipe.next(at(0), 100), Next::Pending(None)));
        sender.send(Ok((vec![1], at(5)))).unwrap();
        assert!(matches!(pipe.next(at(6), 100), Next::Pending(Some(due)) if due == at(25)));
        sender.send(Ok((vec![2], at(10)))).unwrap();
        assert!(matches!(pipe.next(at(25), 100), Next::Segment(bytes, first) if bytes == [1, 2] && first == at(5)));
    }

    #[test]
    fn a_pipe_that_is_to_end_gives_what_was_read_of_it_and_waits_for_no_more() {
        let (sender, arrived) = sync_channel(4);
        let (waker, _listener) = segstream_net::wake::pair().unwrap();
        let mut source = Source::Pipe(PipeSource {
            arrived,
            reader: None,
            ..PipeSource::new("a pipe".into(), Duration::from_secs(9), Clock::start(), &waker, || Ok(&b""[..]))
        });
        sender.send(Ok((vec![1, 2], Instant::ZERO))).unwrap();
        assert!(matches!(source.next(Instant::ZERO, 100), Next::Pending(Some(_))));
        source.end_pipe();
        assert!(matches!(source.next(Instant::ZERO, 100), Next::Segment(bytes, _) if bytes == [1, 2]));
        assert!(matches!(source.next(Instant::ZERO, 100), Next::End));
        drop(sender);
    }

    #[test]
    fn a_file_that_became_shorter_is_a_failure_with_its_name() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), b"0123456789").unwrap();
        let (waker, _listener) = segstream_net::wake::pair().unwrap();
        let mut source = Source::open(path.path(), false, Duration::ZERO, Clock::start(), &waker).unwrap();
        assert!(matches!(source.next(Instant::ZERO, 4), Next::Segment(bytes, _) if bytes == b"0123"));
        File::options().write(true).open(path.path()).unwrap().set_len(4).unwrap();
        let Next::Failed(sentence) = source.next(Instant::ZERO, 4) else { panic!("not a failure") };
        assert!(sentence.contains("shorter") && sentence.contains("6 bytes of 10"), "{sentence}");
    }
}
