//! Streams: a sender for each of ours, a receiver for each of the peer's, a writer for an open segment.
//!
//! Made by connections. Invariant: handles may be used by any number of threads at once; each segment and each verdict goes to one.

use crate::buffers;
use crate::contract::{Contract, ToleranceArgument};
use crate::errors::Fault;
use crate::layout::Layout;
use crate::operation::{Operation, Outcome};
use crate::runtime::{Guarded, Process};
use pyo3::prelude::*;
use segstream::{Bytes, Clock, Error, Progress, Received, SegmentNumber, StreamId, SubmitError, Timestamp, Tolerance};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stream of ours.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Sender {
    facade: Guarded<segstream::StreamSender>,
    contract: Contract,
    clock: Clock,
}

impl Sender {
    pub(crate) fn new(facade: segstream::StreamSender, contract: Contract, clock: Clock) -> Self {
        Self { facade: Guarded::new(facade), contract, clock }
    }

    fn segment(&self, buffer: &Bound<'_, PyAny>, borrow: bool) -> PyResult<Bytes> {
        buffers::segment_of(buffer, borrow, self.contract.layout.as_ref())
    }

    fn source_time(&self, seconds: Option<f64>) -> Result<Timestamp, Fault> {
        match seconds {
            None => Ok(self.clock.now()),
            Some(seconds) => crate::contract::seconds("source_time", seconds).map(|time| Timestamp::from_nanos(time.as_nanos() as u64)),
        }
    }
}

fn own(tolerance: Option<ToleranceArgument>) -> Result<Option<Tolerance>, Fault> {
    tolerance.map(ToleranceArgument::read).transpose()
}

#[pymethods]
impl Sender {
    #[getter]
    fn stream(&self) -> PyResult<u32> {
        Ok(self.facade.get()?.stream().0)
    }

    #[getter]
    fn contract(&self) -> Contract {
        self.contract.clone()
    }

    /// Sends one segment; waits while the send buffer is full.
    #[pyo3(signature = (buffer, source_time, tolerance, borrow))]
    fn send(
        &self,
        buffer: &Bound<'_, PyAny>,
        source_time: Option<f64>,
        tolerance: Option<ToleranceArgument>,
        borrow: bool,
    ) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        let (bytes, at, tolerance) = (self.segment(buffer, borrow)?, self.source_time(source_time)?, own(tolerance)?);
        Ok(Operation::new(async move { Ok(Outcome::Number(facade.send_at(bytes, at, tolerance).await?.0)) }))
    }

    /// Sends one segment unless the send buffer is full: then `None`.
    #[pyo3(signature = (buffer, source_time, tolerance, borrow))]
    fn try_send(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        source_time: Option<f64>,
        tolerance: Option<ToleranceArgument>,
        borrow: bool,
    ) -> PyResult<Option<u64>> {
        let facade = self.facade.get()?;
        let (bytes, at, tolerance) = (self.segment(buffer, borrow)?, self.source_time(source_time)?, own(tolerance)?);
        match Process::get()?.without_gil(py, || facade.try_send(bytes, at, tolerance))? {
            Ok(segment) => Ok(Some(segment.0)),
            Err(Error::Submit(SubmitError::Blocked)) => Ok(None),
            Err(error) => Err(Fault::from(error).into()),
        }
    }

    /// Sends a segment for each buffer.
    fn send_many(&self, buffers: &Bound<'_, PyAny>, borrow: bool) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        let mut segments = buffers::segments_of(buffers, borrow, self.contract.layout.as_ref())?;
        Ok(Operation::new(async move {
            let mut numbers = Vec::with_capacity(segments.len());
            while !segments.is_empty() {
                let sent = facade.send_many(&mut segments).await?;
                numbers.extend(sent.start.0..sent.end.0);
            }
            Ok(Outcome::Numbers(numbers))
        }))
    }

    fn verdict(&self, segment: u64) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move { Ok(Outcome::Judged(facade.verdict(SegmentNumber(segment)).await?)) }))
    }

    fn next_verdict(&self) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move { Ok(facade.next_verdict().await.map_or(Outcome::Nothing, Outcome::Judged)) }))
    }

    #[pyo3(signature = (source_time, tolerance))]
    fn open_segment(&self, source_time: Option<f64>, tolerance: Option<ToleranceArgument>) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        let (at, tolerance) = (self.source_time(source_time)?, own(tolerance)?);
        Ok(Operation::new(async move { Ok(Outcome::Writer(facade.open_segment_at(at, tolerance).await?)) }))
    }

    fn set_drop_oldest(&self, drops_oldest: bool) -> PyResult<()> {
        Ok(self.facade.get()?.set_drop_oldest(drops_oldest).map_err(Fault::from)?)
    }

    fn finish(&self) -> PyResult<()> {
        self.facade.get()?.finish();
        Ok(())
    }

    /// What the peer's application has confirmed: the segments below, and whether it will confirm no more.
    fn durable(&self) -> PyResult<(u64, bool)> {
        let durable = self.facade.get()?.durable().map_err(Fault::from)?;
        Ok((durable.segments.0, durable.last))
    }

    /// Waits until all segments below are confirmed, or no more will be.
    fn confirmed(&self, segments: u64) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move { Ok(Outcome::Durable(facade.confirmed(SegmentNumber(segments)).await?)) }))
    }
}

/// Where the segments of a stream of the peer come from.
pub(crate) struct Home {
    /// Locked while one of the waiting threads asks; the others wait for the lock.
    facade: tokio::sync::Mutex<segstream::StreamReceiver>,
    /// Taken and put back.
    returned: Mutex<VecDeque<Received>>,
    /// Something was put back.
    put_back: tokio::sync::Notify,
    pub(crate) layout: Option<Arc<Layout>>,
}

impl Home {
    fn returned(&self) -> MutexGuard<'_, VecDeque<Received>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next `recv` returns it.
    pub(crate) fn put_back(&self, received: Received) {
        self.returned().push_front(received);
        self.put_back.notify_waiters();
    }

    /// What was put back, or else what `arriving` gives; what is put back meanwhile comes first.
    async fn or_put_back<T>(&self, of: impl Fn(Received) -> T, arriving: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let mut arriving = pin!(arriving);
        loop {
            // Why before looking: what is put back from here on is told.
            let put_back = self.put_back.notified();
            if let Some(received) = self.returned().pop_front() {
                return Ok(of(received));
            }
            tokio::select! {
                biased;
                () = put_back => {}
                arrived = &mut arriving => return arrived,
            }
        }
    }

    /// The next segment; `None` when the stream has ended. Cancel safe.
    async fn recv(&self) -> Result<Option<Received>, Error> {
        let mut facade = self.facade.lock().await;
        self.or_put_back(Some, facade.recv()).await
    }

    /// One segment at least, then those that are there, up to `most`. Empty when the stream has ended. Cancel safe.
    async fn recv_many(&self, most: usize) -> Result<Vec<Received>, Error> {
        let mut facade = self.facade.lock().await;
        let mut segments = Vec::new();
        // Why the vector is out here: what was put back is returned without those that have arrived, and they are left to the next call.
        let first = self.or_put_back(Some, async { facade.recv_many(&mut segments, most).await.map(|_| None) }).await?;
        if let Some(first) = first {
            let mut returned = self.returned();
            let others = returned.len().min(most - 1);
            segments.push(first);
            segments.extend(returned.drain(..others));
        }
        Ok(segments)
    }

    async fn next_units(&self) -> Result<Option<Progress>, Error> {
        let mut facade = self.facade.lock().await;
        self.or_put_back(|received| Some(Progress::Judged(received)), facade.next_units()).await
    }
}

/// A stream of the peer.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Receiver {
    home: Guarded<Arc<Home>>,
    /// Confirms while another thread waits for a segment.
    connection: Guarded<segstream::Connection>,
    stream: u32,
    contract: Contract,
}

impl Receiver {
    pub(crate) fn new(facade: segstream::StreamReceiver, connection: segstream::Connection) -> Self {
        let (stream, contract) = (facade.stream().0, Contract::of(facade.contract()));
        let layout = contract.layout.clone().map(Arc::new);
        let home =
            Home { facade: tokio::sync::Mutex::new(facade), returned: Mutex::default(), put_back: tokio::sync::Notify::new(), layout };
        Self { home: Guarded::new(Arc::new(home)), connection: Guarded::new(connection), stream, contract }
    }
}

#[pymethods]
impl Receiver {
    #[getter]
    const fn stream(&self) -> u32 {
        self.stream
    }

    #[getter]
    fn contract(&self) -> Contract {
        self.contract.clone()
    }

    fn recv(&self) -> PyResult<Operation> {
        let home = Arc::clone(self.home.get()?);
        Ok(Operation::new(async move {
            let received = home.recv().await?;
            Ok(received.map_or(Outcome::Nothing, |received| Outcome::Segment(received, home)))
        }))
    }

    fn recv_many(&self, most: usize) -> PyResult<Operation> {
        let home = Arc::clone(self.home.get()?);
        Ok(Operation::new(async move {
            let received = home.recv_many(most.max(1)).await?;
            Ok(Outcome::Segments(received, home))
        }))
    }

    fn next_units(&self) -> PyResult<Operation> {
        let home = Arc::clone(self.home.get()?);
        Ok(Operation::new(async move {
            Ok(match home.next_units().await? {
                None => Outcome::Nothing,
                Some(Progress::Judged(received)) => Outcome::Segment(received, home),
                Some(Progress::Units(units)) => Outcome::Units(units),
                Some(_) => return Err(Fault::Usage("this version does not know what was read; update segstream".to_owned())),
            })
        }))
    }

    /// Tells the peer that all segments below are safe.
    fn confirm(&self, segments: u64) -> PyResult<()> {
        Ok(self.connection.get()?.confirm(StreamId(self.stream), SegmentNumber(segments)).map_err(Fault::from)?)
    }

    fn confirm_no_more(&self) -> PyResult<()> {
        Ok(self.connection.get()?.confirm_no_more(StreamId(self.stream)).map_err(Fault::from)?)
    }

    /// The next `recv` returns this segment again.
    fn put_back(&self, segment: &crate::segment::Segment) -> PyResult<()> {
        self.home.get()?.put_back(segment.received()?.clone());
        Ok(())
    }
}

/// An open segment.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Writer {
    facade: Guarded<Arc<tokio::sync::Mutex<Option<segstream::SegmentWriter>>>>,
    segment: u64,
}

impl Writer {
    pub(crate) fn new(facade: segstream::SegmentWriter) -> Self {
        let segment = facade.segment().0;
        Self { facade: Guarded::new(Arc::new(tokio::sync::Mutex::new(Some(facade)))), segment }
    }
}

#[pymethods]
impl Writer {
    #[getter]
    const fn segment(&self) -> u64 {
        self.segment
    }

    /// Appends the bytes of a buffer, which are copied. A verdict if the segment was judged before: they were not accepted.
    fn append(&self, buffer: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let facade = Arc::clone(self.facade.get()?);
        let bytes = buffers::segment_of::<Layout>(buffer, false, None)?;
        Ok(Operation::new(async move {
            let mut writer = facade.lock().await;
            let writer = writer.as_mut().ok_or(Fault::Closed("segment"))?;
            Ok(writer.append(&bytes).await?.map_or(Outcome::Nothing, Outcome::Verdict))
        }))
    }

    fn finish(&self) -> PyResult<Operation> {
        let (facade, segment) = (Arc::clone(self.facade.get()?), self.segment);
        Ok(Operation::new(async move {
            let writer = facade.lock().await.take();
            if let Some(writer) = writer {
                writer.finish().await?;
            }
            Ok(Outcome::Number(segment))
        }))
    }
}
