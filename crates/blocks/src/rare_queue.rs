//! A queue that is nearly always empty, and takes no more than a pointer then.
//!
//! For what happens seldom in a connection, of which a server has many. Invariant: an empty queue has no memory of its own.

use std::collections::VecDeque;

/// A queue that is nearly always empty.
#[derive(Clone, Debug)]
#[expect(clippy::box_collection, reason = "an empty queue must be as small as a pointer")]
pub struct RareQueue<T>(Option<Box<VecDeque<T>>>);

impl<T> Default for RareQueue<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> RareQueue<T> {
    /// How many are in it.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.len())
    }

    /// Whether it is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The bytes that it has beyond itself.
    pub fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| size_of::<VecDeque<T>>() + queue.capacity() * size_of::<T>())
    }

    /// The first.
    pub fn front(&self) -> Option<&T> {
        self.0.as_ref()?.front()
    }

    /// All, the first before the others.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|queue| queue.iter())
    }

    /// Adds one behind the others.
    pub fn push_back(&mut self, item: T) {
        self.0.get_or_insert_default().push_back(item);
    }

    /// Adds one in front of the others.
    pub fn push_front(&mut self, item: T) {
        self.0.get_or_insert_default().push_front(item);
    }

    /// Takes the first.
    pub fn pop_front(&mut self) -> Option<T> {
        let queue = self.0.as_mut()?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.0 = None;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_queue_and_an_empty_one_has_no_memory() {
        let mut queue = RareQueue::default();
        for item in 0..100 {
            queue.push_back(item);
        }
        queue.push_front(-1);
        assert_eq!((queue.len(), queue.front()), (101, Some(&-1)));
        assert!(queue.iter().copied().eq(-1..100) && queue.heap_bytes() > 0);
        assert!((-1..100).all(|item| queue.pop_front() == Some(item)));
        assert!(queue.is_empty() && queue.heap_bytes() == 0 && queue.pop_front().is_none());
        assert_eq!(size_of::<RareQueue<[u64; 9]>>(), size_of::<usize>());
    }
}
