//! The picture of `top`: a line of sums, a table of connections, and the selected one in detail.
//!
//! Called for each frame; ratatui draws it. Invariant: every verdict has a sign of its own, so that no colour is needed to tell them apart.

use super::history::{Connection, History, Slot, Strip};
use super::scrape::Source;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Sparkline, Table, TableState};
use segstream::Bandwidth;
use segstream::metrics::CONNECTION_LOSS_RUN;
use std::collections::{BTreeSet, VecDeque};

/// The rows that the detail of a connection takes, where there is room; in a high terminal it takes a third.
const DETAIL_ROWS: u16 = 10;
/// The rows of its series, among those.
const SERIES_ROWS: u16 = 4;

/// Draws a frame. `selected` is the place of a connection in the table.
pub(super) fn draw(frame: &mut Frame<'_>, history: &History, selected: usize) {
    let area = frame.area();
    let is_there = area.height >= 3 * DETAIL_ROWS / 2 && !history.connections.is_empty();
    let detail = if is_there { DETAIL_ROWS.max(area.height / 3) } else { 0 };
    let failure = history.failures.first_key_value().map(|(source, why)| format!("{source}: {why}"));
    let rows = [1, u16::from(failure.is_some())].map(Constraint::Length);
    let rows = rows.into_iter().chain([Constraint::Min(2), Constraint::Length(detail), Constraint::Length(1)]);
    let [head, failed, table, below, foot] = Layout::vertical(rows).areas(area);
    frame.render_widget(sums(history), head);
    // Why a line of its own: behind the sums, most of it would be cut off.
    frame.render_widget(Paragraph::new(failure.unwrap_or_default()).style(Style::new().fg(Color::Red)), failed);
    draw_table(frame, table, history, selected);
    if let Some(((_, number), connection)) = history.connections.iter().nth(selected).filter(|_| detail > 0) {
        draw_detail(frame, below, *number, connection);
    }
    frame.render_widget(legend(), foot);
}

fn sums(history: &History) -> Paragraph<'_> {
    let sent: f64 = history.connections.values().map(Connection::sent_bps).sum();
    let received: f64 = history.connections.values().map(Connection::received_bps).sum();
    let count = history.connections.len();
    let plural = if count == 1 { "" } else { "s" };
    let mut text = format!("{count} connection{plural}, sent {}, received {}", rate(sent), rate(received));
    if count == 0 && history.failures.is_empty() {
        text.push_str("; waiting for connections");
    }
    Paragraph::new(text).style(Style::new().add_modifier(Modifier::BOLD))
}

/// The columns of the table beside the strip of verdicts: their heads and widths.
fn columns(width: u16, history: &History) -> Vec<(&'static str, u16)> {
    let sources: BTreeSet<&Source> = history.connections.keys().map(|(source, _)| source).collect();
    let process = sources.iter().map(|source| source.to_string().len() as u16).max().filter(|_| sources.len() > 1);
    let mut columns = vec![("PEER", 21), ("SENT", 11), ("RECEIVED", 11), ("LOSS", 6), ("RTT", 9)];
    if width >= 100 {
        columns.push(("QUEUE", 9));
    }
    if let Some(process) = process {
        columns.insert(0, ("PROCESS", process.max(7)));
    }
    columns
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, history: &History, selected: usize) {
    let columns = columns(area.width, history);
    let taken: u16 = columns.iter().map(|(_, width)| width + 1).sum();
    let strips = area.width.saturating_sub(taken);
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width)).chain([Constraint::Length(strips)]);
    // Why only these rows: with hundreds of connections most are not seen.
    let seen = usize::from(area.height.saturating_sub(1)).max(1);
    let first = selected.saturating_sub(seen - 1);
    let rows = history.connections.iter().skip(first).take(seen).map(|((source, _), connection)| {
        let cells = columns.iter().map(|(head, _)| Line::from(cell(head, source, connection)));
        let strip = connection.busiest_stream().map(|strip| strip_of(strip, strips)).unwrap_or_default();
        Row::new(cells.chain([strip]))
    });
    let heads = columns.iter().map(|(head, _)| *head).chain(["VERDICTS"]);
    let head = Row::new(heads).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let table = Table::new(rows, widths).header(head).row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let place = (!history.connections.is_empty()).then(|| selected - first);
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(place));
}

/// What stands in a column of a connection's row.
fn cell(column: &str, source: &Source, connection: &Connection) -> String {
    let ms = |metric: &str| connection.value(metric).map_or("-".to_owned(), |seconds| format!("{:.1} ms", 1e3 * seconds));
    match column {
        "PROCESS" => source.to_string(),
        "PEER" => connection.peer.clone(),
        "SENT" => rate(connection.sent_bps()),
        "RECEIVED" => rate(connection.received_bps()),
        "LOSS" => connection.loss.back().map_or("-".to_owned(), |loss| format!("{:.1} %", 100.0 * loss)),
        "RTT" => ms("segstream_rtt_smoothed_seconds"),
        "QUEUE" => ms("segstream_queue_seconds"),
        _ => String::new(),
    }
}

fn draw_detail(frame: &mut Frame<'_>, area: Rect, number: u64, connection: &Connection) {
    let phase = connection.phase.as_deref().map_or(String::new(), |phase| format!(", {phase}"));
    let block = Block::new().borders(Borders::TOP).title(format!(" connection {number} with {}{phase} ", connection.peer));
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let [series, streams] =
        Layout::vertical([Constraint::Length(SERIES_ROWS + area.height.saturating_sub(DETAIL_ROWS) / 2), Constraint::Min(1)]).areas(inside);
    let columns: [Rect; 3] = Layout::horizontal([Constraint::Fill(1); 3]).spacing(1).areas(series);
    let last = |series: &VecDeque<f64>| series.back().copied().unwrap_or(0.0);
    draw_series(frame, columns[0], format!("rate {}", rate(last(&connection.rate_bps))), &connection.rate_bps, 1.0);
    draw_series(frame, columns[1], format!("round trip {:.1} ms", last(&connection.rtt_ms)), &connection.rtt_ms, 1e3);
    let runs = connection.value(CONNECTION_LOSS_RUN).filter(|run| *run > 0.0).map_or(String::new(), |run| format!(", in runs of {run:.1}"));
    draw_series(frame, columns[2], format!("loss {:.2} %{runs}", 100.0 * last(&connection.loss)), &connection.loss, 1e6);
    let lines: Vec<Line<'_>> = connection
        .streams
        .iter()
        .take(streams.height.into())
        .map(|((direction, stream), strip)| {
            let [complete, within, expired, unknown] = strip.counts;
            let unknown = if unknown > 0 { format!(" {unknown} unknown") } else { String::new() };
            let name =
                format!("{direction:8} stream {stream}: {complete} complete, {within} within tolerance, {expired} expired{unknown} ");
            let width = streams.width.saturating_sub(name.chars().count() as u16);
            let mut line = strip_of(strip, width);
            line.spans.insert(0, Span::raw(name));
            line
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), streams);
}

/// A series under its name; a sparkline takes whole numbers, so values are multiplied by `scale` first.
fn draw_series(frame: &mut Frame<'_>, area: Rect, name: String, series: &VecDeque<f64>, scale: f64) {
    let block = Block::new().title(name);
    let width = usize::from(area.width);
    let data: Vec<u64> = series.iter().skip(series.len().saturating_sub(width)).map(|value| (value * scale) as u64).collect();
    frame.render_widget(Sparkline::default().block(block).data(data).style(Style::new().fg(Color::Cyan)), area);
}

/// The newest slots of a strip that fit `width`.
fn strip_of(strip: &Strip, width: u16) -> Line<'static> {
    let first = strip.slots.len().saturating_sub(width.into());
    Line::from(strip.slots.iter().skip(first).map(|slot| sign(*slot)).collect::<Vec<_>>())
}

fn sign(slot: Slot) -> Span<'static> {
    let (sign, color) = match slot {
        Slot::Nothing => ("·", Color::DarkGray),
        Slot::Complete => ("█", Color::Green),
        Slot::WithinTolerance => ("▒", Color::Yellow),
        Slot::Expired => ("x", Color::Red),
        Slot::Unknown => ("?", Color::Magenta),
    };
    Span::styled(sign, Style::new().fg(color))
}

fn legend() -> Paragraph<'static> {
    let mut spans = Vec::new();
    for (slot, name) in [
        (Slot::Complete, " complete  "),
        (Slot::WithinTolerance, " within tolerance  "),
        (Slot::Expired, " expired  "),
        (Slot::Unknown, " unknown  "),
    ] {
        spans.extend([sign(slot), Span::raw(name)]);
    }
    spans.push(Span::raw("up, down  q: quit"));
    Paragraph::new(Line::from(spans))
}

/// A rate with three digits.
fn rate(bps: f64) -> String {
    if bps < 1.0 {
        return "-".to_owned();
    }
    let last_digit = 10_f64.powf((bps.log10().floor() - 2.0).max(0.0));
    Bandwidth::from_bits_per_second(((bps / last_digit).round() * last_digit) as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::scrape::Sample;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use segstream::metrics::{CONNECTION_LOSS, CONNECTION_SENT, PUBLICATIONS, STREAM_SEGMENTS};
    use std::collections::BTreeMap;

    /// A process with this many connections, seen for 30 periods in which each judged a segment or more.
    fn history(connections: u32) -> History {
        let (mut history, source) = (History::default(), Source::Address(([127, 0, 0, 1], 9911).into()));
        for period in 0..30 {
            let samples: Vec<Sample> = (0..connections)
                .flat_map(|number| {
                    let of = move |name: &str, labels: &[(&str, &str)], value: f64| Sample {
                        name: name.to_owned(),
                        labels: [("connection", number.to_string()), ("peer", format!("192.0.2.{}:4433", number % 256))]
                            .into_iter()
                            .chain(labels.iter().map(|(name, value)| (*name, (*value).to_owned())))
                            .map(|(name, value)| (name.to_owned(), value))
                            .collect(),
                        value,
                    };
                    let verdict = |verdict, count: u32| {
                        of(STREAM_SEGMENTS, &[("stream", "0"), ("direction", "sent"), ("verdict", verdict)], count.into())
                    };
                    [
                        of(CONNECTION_SENT, &[], 1_250_000.0),
                        of(CONNECTION_LOSS, &[], 0.013),
                        of("segstream_rtt_smoothed_seconds", &[], 0.0234),
                        of("segstream_controller_phase", &[("value", "delay")], 1.0),
                        verdict("complete", period),
                        verdict("within_tolerance", period / 5),
                        verdict("expired", period / 10),
                    ]
                })
                .collect();
            let publication = Sample { name: PUBLICATIONS.to_owned(), labels: BTreeMap::new(), value: period.into() };
            history.on_samples(&source, &[samples, vec![publication]].concat());
        }
        history
    }

    fn page(columns: u16, rows: u16, history: &History, selected: usize) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| draw(frame, history, selected)).unwrap();
        let content = terminal.backend().buffer().content().to_vec();
        content.chunks(columns.into()).map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    #[test]
    fn one_connection_fits_a_terminal_of_80_columns_with_all_that_is_asked() {
        let page = page(80, 24, &history(1), 0);
        assert!(page[0].starts_with("1 connection, sent 10 Mbit/s"), "{}", page[0]);
        let row = &page[2];
        for cell in ["192.0.2.0:4433", "10 Mbit/s", "1.3 %", "23.4 ms"] {
            assert!(row.contains(cell), "{cell} is not in {row}");
        }
        let text = page.join("\n");
        assert!(text.contains("29 complete, 5 within tolerance, 2 expired"), "{text}");
        assert!(text.contains("round trip 23.4 ms") && text.contains("loss 1.30 %") && text.contains(", delay"), "{text}");
        assert!(text.contains("████▒"), "no strip of verdicts: {text}");
        assert!(page[23].contains("within tolerance") && page[23].contains("q: quit"), "{}", page[23]);
    }

    #[test]
    fn of_five_hundred_connections_the_selected_one_is_seen_at_every_size() {
        let history = history(500);
        for (columns, rows) in [(80, 24), (200, 60)] {
            for selected in [0, 7, 250, 499] {
                let text = page(columns, rows, &history, selected).join("\n");
                assert!(text.contains("500 connections"));
                assert!(
                    text.contains(&format!("192.0.2.{}:4433", selected % 256)),
                    "{selected} is not seen at {columns} x {rows}:\n{text}"
                );
            }
        }
    }

    #[test]
    fn why_an_address_does_not_answer_is_read_in_a_terminal_of_80_columns() {
        let mut history = history(1);
        let nobody = Source::Address(([127, 0, 0, 1], 9912).into());
        history.on_failure(&nobody, "no metrics; check the address and --metrics there (Connection refused)".to_owned());
        let page = page(80, 24, &history, 0);
        assert!(page[0].starts_with("1 connection, sent 10 Mbit/s") && page[3].contains("192.0.2.0:4433"), "{page:?}");
        assert!(page[1].starts_with("127.0.0.1:9912: no metrics; check the address and --metrics there (Conn"), "{page:?}");
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_without_an_error() {
        let history = history(3);
        for (columns, rows) in [(1, 1), (10, 2), (40, 5), (79, 15), (500, 200)] {
            page(columns, rows, &history, 2);
            page(columns, rows, &History::default(), 0);
        }
    }
}
