//! The words for the values of a tandem, on the command line and in a scenario's text.
//!
//! Called by both.
//!
//! Invariant: what a value is called reads back as that value.

use segstream_schemes::xtp::Question;
use segstream_sim::tandem::{Arrivals, Order, Tie};

/// How messages arrive, their rate aside: `bernoulli`, `ibp:c2=10` or `ibp:c2=10,alpha=0.8` (XT 3.3). The rate is `rate`.
///
/// # Errors
/// Says what can be written.
pub fn arrivals(text: &str, rate: f64) -> Result<Arrivals, String> {
    if text == "bernoulli" {
        return Ok(Arrivals::Bernoulli { rate });
    }
    let refused = || {
        format!("\"{text}\" is not how messages arrive; write bernoulli, or ibp with its squared coefficient of variation, as ibp:c2=10")
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(refused);
    let pieces = text.strip_prefix("ibp:c2=").ok_or_else(refused)?;
    let (scv, alpha) = match pieces.split_once(",alpha=") {
        Some((scv, alpha)) => (number(scv)?, number(alpha)?),
        None => (number(pieces)?, 1.0),
    };
    Ok(Arrivals::Interrupted { rate, scv, alpha })
}

/// The text for it.
pub fn of_arrivals(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Bernoulli { .. } => "bernoulli".to_owned(),
        Arrivals::Interrupted { scv, alpha: 1.0, .. } => format!("ibp:c2={scv}"),
        Arrivals::Interrupted { scv, alpha, .. } => format!("ibp:c2={scv},alpha={alpha}"),
    }
}

/// What comes first in a queue, the packet that leaves or the one that arrives: `departures` or `arrivals`.
///
/// # Errors
/// Says what can be written.
pub fn order(text: &str) -> Result<Order, String> {
    match text {
        "departures" => Ok(Order::DeparturesFirst),
        "arrivals" => Ok(Order::ArrivalsFirst),
        other => Err(format!("\"{other}\" is not what can be first in a slot; write departures or arrivals")),
    }
}

/// The word for it.
pub const fn of_order(order: Order) -> &'static str {
    match order {
        Order::DeparturesFirst => "departures",
        Order::ArrivalsFirst => "arrivals",
    }
}

/// Which of two packets that arrive at LINK1 in one slot is first: `external`, `user` or `drawn`.
///
/// # Errors
/// Says what can be written.
pub fn tie(text: &str) -> Result<Tie, String> {
    match text {
        "external" => Ok(Tie::ExternalFirst),
        "user" => Ok(Tie::UserFirst),
        "drawn" => Ok(Tie::Drawn),
        other => Err(format!("\"{other}\" is not whose packet can be first at LINK1; write external, user or drawn")),
    }
}

/// The word for it.
pub const fn of_tie(tie: Tie) -> &'static str {
    match tie {
        Tie::ExternalFirst => "external",
        Tie::UserFirst => "user",
        Tie::Drawn => "drawn",
    }
}

/// What the last packet of a window asks for: `sreq` or `dreq`.
///
/// # Errors
/// Says what can be written.
pub fn question(text: &str) -> Result<Question, String> {
    match text {
        "sreq" => Ok(Question::Status),
        "dreq" => Ok(Question::Delivery),
        other => Err(format!("\"{other}\" is not what a packet can ask for; write sreq or dreq")),
    }
}

/// The word for it.
pub const fn of_question(question: Question) -> &'static str {
    match question {
        Question::Status => "sreq",
        Question::Delivery => "dreq",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_value_is_called_reads_back_as_that_value() {
        for text in ["bernoulli", "ibp:c2=10", "ibp:c2=2.5,alpha=0.8"] {
            let read = arrivals(text, 0.07).unwrap();
            assert_eq!((of_arrivals(&read).as_str(), read.rate()), (text, 0.07));
        }
        for text in ["departures", "arrivals"] {
            assert_eq!(of_order(order(text).unwrap()), text);
        }
        for text in ["external", "user", "drawn"] {
            assert_eq!(of_tie(tie(text).unwrap()), text);
        }
        for text in ["sreq", "dreq"] {
            assert_eq!(of_question(question(text).unwrap()), text);
        }
        assert!(question("areq").unwrap_err().contains("write sreq or dreq"));
        for text in ["", "poisson", "ibp", "ibp:c2=", "ibp:c2=ten", "ibp:c2=inf", "ibp:c2=10,alpha="] {
            assert!(arrivals(text, 0.1).unwrap_err().contains("write bernoulli"), "{text}");
        }
        assert!(order("both").unwrap_err().contains("write departures or arrivals") && tie("xtp1").unwrap_err().contains("write external"));
    }
}
