//! Reads the segments to send on a separate thread, so that a slow source never blocks the protocol.
//!
//! Called by the sending loop.
//!
//! Invariant: few segments are read ahead; a segment that the scheme does not accept yet is kept and offered again.

use crate::wake::Waker;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

/// How many segments are read ahead.
const READ_AHEAD_SEGMENTS: usize = 4;

/// The next item of a source.
#[derive(Debug)]
pub(super) enum Offer {
    Segment(Vec<u8>),
    /// Nothing yet; the waker wakes the driver when there is something.
    Nothing,
    End,
    Failed(io::Error),
}

/// The loop's end of the thread.
#[derive(Debug)]
pub(super) struct Source {
    segments: Receiver<io::Result<Vec<u8>>>,
    back: Option<Vec<u8>>,
}

impl Source {
    /// Reads `segments` on a new thread, which wakes the driver by `waker`. The thread ends with the source, or after this is
    /// dropped, when it has read its present segment.
    pub(super) fn start(segments: impl Iterator<Item = io::Result<Vec<u8>>> + Send + 'static, waker: Waker) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(READ_AHEAD_SEGMENTS);
        let read = move || {
            for segment in segments {
                let failed = segment.is_err();
                if sender.send(segment).is_err() || failed {
                    break;
                }
                waker.wake();
            }
            drop(sender);
            waker.wake();
        };
        drop(std::thread::Builder::new().name("segments".to_owned()).spawn(read)?);
        Ok(Self { segments: receiver, back: None })
    }

    pub(super) fn next(&mut self) -> Offer {
        if let Some(bytes) = self.back.take() {
            return Offer::Segment(bytes);
        }
        match self.segments.try_recv() {
            Ok(Ok(bytes)) => Offer::Segment(bytes),
            Ok(Err(error)) => Offer::Failed(error),
            Err(TryRecvError::Empty) => Offer::Nothing,
            Err(TryRecvError::Disconnected) => Offer::End,
        }
    }

    /// Puts a segment back, to be offered again.
    pub(super) fn put_back(&mut self, bytes: Vec<u8>) {
        self.back = Some(bytes);
    }
}

/// The bytes of `reader` in segments of `segment_bytes`, the last of which may be shorter and is never empty. Ends at the end of
/// `reader` or its first error.
pub fn read_segments<R: Read>(mut reader: R, segment_bytes: usize) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let mut segment = Vec::new();
        let read = reader.by_ref().take(segment_bytes.max(1) as u64).read_to_end(&mut segment);
        ended = read.is_err() || segment.len() < segment_bytes.max(1);
        match read {
            Err(error) => Some(Err(error)),
            Ok(_) => (!segment.is_empty()).then_some(Ok(segment)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_full_but_the_last_and_none_is_empty() {
        let lengths = |bytes: usize| -> Vec<usize> {
            let source = vec![1; bytes];
            read_segments(io::Cursor::new(source), 10).map(|segment| segment.unwrap().len()).collect()
        };
        assert_eq!(lengths(25), [10, 10, 5]);
        assert_eq!(lengths(20), [10, 10]);
        assert_eq!(lengths(0), [0; 0]);
    }

    #[test]
    fn a_source_that_fails_says_so_after_what_it_had() {
        let (waker, _listener) = crate::wake::pair().unwrap();
        let failing = [Ok(vec![1]), Err(io::Error::other("gone")), Ok(vec![2])];
        let mut source = Source::start(failing.into_iter(), waker).unwrap();
        let mut seen = Vec::new();
        loop {
            match source.next() {
                Offer::Segment(bytes) => seen.push(format!("{bytes:?}")),
                Offer::Failed(error) => seen.push(error.to_string()),
                Offer::Nothing => std::thread::yield_now(),
                Offer::End => break,
            }
        }
        assert_eq!(seen, ["[1]", "gone"]);
    }
}
