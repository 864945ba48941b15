//! The live streams of one direction, found by number.
//!
//! Streams are numbered in the order in which they are opened, and no number is used twice. Streams that have ended leave the
//! table, so that its size is that of the live ones, however many there have been.
//!
//! Used by both halves and both stores. A *place* is where a stream is in the table at present; it changes when others leave.
//!
//! Invariant: numbers ascend; `streams[place]` has the number `numbers[place]`.

use core::ops::{Index, IndexMut};
use segstream_base::StreamId;

/// Up to so many streams there is room for none but those there are: most connections have no more.
const FEW: usize = 4;

/// Live streams, or what is kept of each of them.
#[derive(Debug)]
pub(crate) struct LiveStreams<T> {
    numbers: Vec<StreamId>,
    streams: Vec<T>,
}

impl<T> Default for LiveStreams<T> {
    fn default() -> Self {
        Self { numbers: Vec::new(), streams: Vec::new() }
    }
}

impl<T> LiveStreams<T> {
    /// How many there are.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.streams.len()
    }

    /// Where stream `number` is.
    #[inline]
    pub(crate) fn place(&self, number: StreamId) -> Option<usize> {
        // Why first: until a stream leaves, and for the oldest ones for ever, the place is the number.
        let place = number.0 as usize;
        if self.numbers.get(place) == Some(&number) { Some(place) } else { self.numbers.binary_search(&number).ok() }
    }

    /// The number of the stream at `place`.
    #[inline]
    pub(crate) fn number(&self, place: usize) -> StreamId {
        self.numbers[place]
    }

    #[inline]
    pub(crate) fn get(&self, number: StreamId) -> Option<&T> {
        self.streams.get(self.place(number)?)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: StreamId) -> Option<&mut T> {
        let place = self.place(number)?;
        self.streams.get_mut(place)
    }

    /// Adds stream `number`, which is not there.
    pub(crate) fn insert(&mut self, number: StreamId, stream: T) {
        if self.streams.len() < FEW {
            self.numbers.reserve_exact(1);
            self.streams.reserve_exact(1);
        }
        let place = self.numbers.partition_point(|&known| known < number);
        debug_assert_ne!(self.numbers.get(place), Some(&number), "stream {number} is opened twice");
        self.numbers.insert(place, number);
        self.streams.insert(place, stream);
        self.debug_assert_order();
    }

    /// Stream `number`, added if it is not there.
    pub(crate) fn get_or_insert(&mut self, number: StreamId) -> &mut T
    where
        T: Default,
    {
        let place = match self.place(number) {
            Some(place) => place,
            None => {
                self.insert(number, T::default());
                self.numbers.partition_point(|&known| known < number)
            }
        };
        &mut self.streams[place]
    }

    /// Keeps the streams of which `keep` says so, by number.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(StreamId, &mut T) -> bool) {
        let mut place = 0;
        let numbers = &mut self.numbers;
        self.streams.retain_mut(|stream| {
            let kept = keep(numbers[place], stream);
            if kept {
                place += 1;
            } else {
                numbers.remove(place);
            }
            kept
        });
        self.debug_assert_order();
    }

    /// Each stream has its number, and numbers ascend.
    fn debug_assert_order(&self) {
        debug_assert_eq!(self.numbers.len(), self.streams.len(), "numbers and streams have parted");
        debug_assert!(self.numbers.windows(2).all(|pair| pair[0] < pair[1]), "numbers do not ascend: {:?}", self.numbers);
    }

    pub(crate) fn iter(&self) -> core::slice::Iter<'_, T> {
        self.streams.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.streams.iter_mut()
    }

    /// The numbers, ascending.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.numbers.iter().copied()
    }

    /// Each stream with its number.
    pub(crate) fn numbered_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut T)> {
        self.numbers.iter().copied().zip(&mut self.streams)
    }
}

/// By place, not by number.
impl<T> Index<usize> for LiveStreams<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        &self.streams[place]
    }
}

/// By place, not by number.
impl<T> IndexMut<usize> for LiveStreams<T> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.streams[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_by_number_whoever_has_left() {
        let mut streams = LiveStreams::default();
        for number in [0, 1, 2, 5, 3] {
            streams.insert(StreamId(number), number * 10);
        }
        assert_eq!(streams.numbers().collect::<Vec<_>>(), [0, 1, 2, 3, 5].map(StreamId));
        streams.retain(|number, _| number.0 % 2 == 1);
        assert_eq!(
            (streams.len(), streams.place(StreamId(1)), streams.place(StreamId(5)), streams.place(StreamId(2))),
            (3, Some(0), Some(2), None)
        );
        assert_eq!((streams.get(StreamId(3)), streams.get(StreamId(0)), streams[0], streams.number(2).0), (Some(&30), None, 10, 5));
        *streams.get_or_insert(StreamId(4)) += 7;
        *streams.get_or_insert(StreamId(4)) += 7;
        assert_eq!((streams.get(StreamId(4)), streams.len()), (Some(&14), 4));
    }

    #[test]
    fn a_table_of_a_thousand_streams_one_after_another_stays_small() {
        let mut streams = LiveStreams::default();
        for number in 0..1000 {
            streams.retain(|known, _| known == StreamId(0));
            streams.insert(StreamId(number), ());
        }
        assert_eq!(streams.numbers().collect::<Vec<_>>(), [0, 999].map(StreamId));
    }
}
