//! What the segments of a stream are in Python: arrays of one type and shape. It travels in the label of the stream.
//!
//! Called when a contract is made, when a stream is accepted, and before a segment is sent. The label is then a JSON object,
//! `{"label":"camera","dtype":"<u2","shape":[512,512]}`; any other label is a text without a layout.
//!
//! Invariant: a label of the peer is data: what is no valid layout is a text.

use crate::buffers::Expectation;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::ffi::CString;

/// How numpy spells the byte order of this machine.
const NATIVE: char = if cfg!(target_endian = "little") { '<' } else { '>' };

/// The type and the shape of the arrays of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The type as numpy spells it: byte order, kind, size, such as `<f4`.
    pub(crate) dtype: String,
    /// The shape; the first may be -1, any length. Empty is one dimension of any length.
    pub(crate) shape: Vec<i64>,
}

/// A label with a layout, as it travels.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    label: String,
    dtype: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shape: Vec<i64>,
}

/// The longest shape; numpy's limit is 64.
const DIMENSIONS_MAX: usize = 32;

impl Layout {
    /// Reads a layout.
    ///
    /// # Errors
    ///
    /// A sentence when the type is none that a buffer can have, or the shape is none of an array.
    pub(crate) fn new(dtype: String, shape: Vec<i64>) -> Result<Self, String> {
        let layout = Self { dtype, shape };
        let item_bytes = layout.item_bytes().ok_or_else(|| {
            format!(
                "'{}' is no type that travels; give booleans, integers, floats or complex numbers, or view the array as bytes",
                layout.dtype
            )
        })?;
        let is_length = |(at, length): (usize, &i64)| *length >= 0 || (*length == -1 && at == 0);
        if layout.shape.len() > DIMENSIONS_MAX || !layout.shape.iter().enumerate().all(is_length) {
            return Err(format!("{:?} is no shape; give lengths from 0 on, of which the first may be -1 for any", layout.shape));
        }
        let bytes = layout
            .shape
            .iter()
            .filter(|length| **length >= 0)
            .try_fold(item_bytes as i64, |bytes, length| bytes.checked_mul((*length).max(1)));
        bytes.ok_or_else(|| format!("an array of shape {:?} is larger than any memory", layout.shape))?;
        Ok(layout)
    }

    /// The size of an element; `None` if the type is not one of those that travel.
    fn item_bytes(&self) -> Option<usize> {
        let (order, rest) = (self.dtype.chars().next()?, self.dtype.get(1..)?);
        let (kind, size) = (rest.chars().next()?, rest.get(1..)?);
        let bytes: usize = size.parse().ok()?;
        let known = match kind {
            'b' => bytes == 1,
            'i' | 'u' => [1, 2, 4, 8].contains(&bytes),
            'f' => [2, 4, 8, 16].contains(&bytes),
            'c' => [8, 16, 32].contains(&bytes),
            _ => false,
        };
        (known && ['<', '>', '|'].contains(&order)).then_some(bytes)
    }

    /// The format of an element as the module `struct` spells it, its size and the shape, of a segment of so many bytes; `None` if it
    /// is no array of this layout.
    pub(crate) fn described(&self, bytes: usize) -> Option<(CString, isize, Vec<isize>)> {
        let item_bytes = self.item_bytes()?;
        let code = match (self.dtype.chars().nth(1)?, item_bytes) {
            ('b', 1) => "?",
            ('i', 1) => "b",
            ('i', 2) => "h",
            ('i', 4) => "i",
            ('i', 8) => "q",
            ('u', 1) => "B",
            ('u', 2) => "H",
            ('u', 4) => "I",
            ('u', 8) => "Q",
            ('f', 2) => "e",
            ('f', 4) => "f",
            ('f', 8) => "d",
            ('c', 8) => "Zf",
            ('c', 16) => "Zd",
            // Long doubles differ from machine to machine.
            _ => return None,
        };
        // What is native is written without an order, so that a memoryview can be indexed.
        let order = match self.dtype.chars().next()? {
            order if order == '|' || order == NATIVE => String::new(),
            order => order.to_string(),
        };
        let has_any = self.shape.first().is_none_or(|first| *first < 0);
        let mut shape: Vec<isize> = self.shape.iter().filter(|length| **length >= 0).map(|length| *length as isize).collect();
        if has_any {
            let one = shape.iter().product::<isize>() * item_bytes as isize;
            shape.insert(0, (bytes as isize).checked_div(one)?);
        }
        let fits = shape.iter().product::<isize>() * item_bytes as isize == bytes as isize;
        Some((CString::new(format!("{order}{code}")).ok()?, item_bytes as isize, shape)).filter(|_| fits)
    }

    /// The label with this layout in it.
    pub(crate) fn labelled(&self, label: &str) -> String {
        let label = Label { label: label.to_owned(), dtype: self.dtype.clone(), shape: self.shape.clone() };
        serde_json::to_string(&label).unwrap_or_default()
    }

    /// The text and the layout of a label.
    pub(crate) fn of_label(label: &str) -> (String, Option<Self>) {
        let parsed = serde_json::from_str::<Label>(label).ok();
        let layout = parsed.and_then(|parsed| Some((parsed.label, Self::new(parsed.dtype, parsed.shape).ok()?)));
        match layout {
            Some((text, layout)) => (text, Some(layout)),
            None => (label.to_owned(), None),
        }
    }
}

impl Expectation for Layout {
    fn check(&self, format: &str, item_bytes: usize, is_raw: bool, bytes: usize) -> PyResult<()> {
        let expected = self.item_bytes().unwrap_or(1);
        // Bytes and bytearrays are memory of any type; of everything else the type is known.
        let is_expected = item_bytes == expected && spells(format, &self.dtype);
        if !is_raw && !is_expected {
            return Err(PyTypeError::new_err(format!(
                "elements of format '{format}' and {item_bytes} bytes were given on a stream of dtype '{}'; convert them with a.astype('{}'), or open a stream of their dtype",
                self.dtype, self.dtype
            )));
        }
        let one = self.shape.iter().filter(|length| **length >= 0).fold(expected as i64, |bytes, length| bytes * length) as usize;
        let fits = match self.shape.first() {
            None | Some(-1) => one > 0 && bytes.is_multiple_of(one) || bytes == 0,
            Some(_) => bytes == one,
        };
        if fits {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("{bytes} bytes are no array of dtype '{}' and shape {:?}", self.dtype, self.shape)))
    }
}

/// Whether a format of the buffer protocol and a type of numpy are of one kind and byte order.
fn spells(format: &str, dtype: &str) -> bool {
    let (order, code) = match format.chars().next() {
        Some(order @ ('<' | '>' | '!' | '=' | '@')) => (order, &format[1..]),
        _ => ('@', format),
    };
    let kind = match code {
        "?" => 'b',
        "b" | "h" | "i" | "l" | "q" | "n" => 'i',
        "B" | "H" | "I" | "L" | "Q" | "N" => 'u',
        "e" | "f" | "d" | "g" => 'f',
        "Zf" | "Zd" | "Zg" => 'c',
        _ => return false,
    };
    let order = match order {
        '@' | '=' => NATIVE,
        '!' => '>',
        other => other,
    };
    let (wanted, wanted_kind) = (dtype.chars().next(), dtype.chars().nth(1));
    wanted_kind == Some(kind) && (wanted == Some('|') || wanted == Some(order))
}
