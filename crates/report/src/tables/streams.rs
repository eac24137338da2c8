//! The table of streams: what each product does to their messages.

use weir_model::load::Cancellation;
use weir_model::text::{Unit, count, human_us};

use super::{Cell, Column, RowKind, Table, TableOf};
use crate::summary::{StreamRow, Summary};

/// A row for each product, workload and load; `None` where no response is a stream.
pub fn streams(summary: &Summary) -> Option<Table> {
    let rows = &summary.streams;
    let first = rows.first()?;
    let millis = |us: Option<f64>| us.map(|us| Cell::number(format!("{:.2}", us / 1e3), us));
    let mut table = TableOf::<StreamRow>::new();
    table.add(Column::text("Product"), |row| row.label.clone());
    if rows.iter().any(|row| (&row.workload, &row.load) != (&first.workload, &first.load)) {
        table.add(Column::text("Workload, load"), |row| format!("{}, {}", row.workload, row.load));
    }
    table.add(Column::text("Messages"), |row| row.verdict.clone());
    let help = "From the time that the origin wrote into a message to its arrival, the median of all messages.";
    table.add(Column::number("Delay p50", Unit::MILLIS.name).help(help), move |row| millis(row.delay_p50_us));
    table.add(Column::number("p99", Unit::MILLIS.name), move |row| millis(row.delay_p99_us));
    let help = "Messages that come together in the mean; 1 is one by one.";
    table.add(Column::number("A read", "messages").help(help).dispensable(3), |row| Cell::short(row.a_read));
    let help = "From a request being due to the head of its response, the median.";
    table.add(Column::number("Head", Unit::MILLIS.name).help(help).dispensable(1), move |row| millis(row.head_us));
    let help = "From a request being due to its first message, the median: of a language model the time to first token (TTFT).";
    table.add(Column::number("First", Unit::MILLIS.name).help(help), move |row| millis(row.first_message_us));
    let help = "The mean gap between the messages of a stream, the median of all: of a language model the time per output token (TPOT). It \
                is the sender's, whatever a product holds.";
    table.add(Column::number("Mean gap", Unit::MILLIS.name).help(help).dispensable(5), move |row| {
        millis(row.per_message_us)
    });
    let help = "From a message to the next, the 99th percentile: of a language model the inter-token latency (ITL).";
    table
        .add(Column::number("Gap p99", Unit::MILLIS.name).help(help).dispensable(4), move |row| millis(row.gap_p99_us));
    let help = "Streams that ended with their last message, of those begun.";
    table.add(Column::text("Whole").help(help).dispensable(2), |row| {
        format!("{} of {}", count(row.total.whole), count(row.total.begun))
    });
    if rows.iter().any(|row| row.cancellation.is_some()) {
        let help = "Streams that the client cancelled in their middle and whose end the origin saw within 1 s, of all, and the 99th percentile of \
                    that time: of several trials the worst.";
        table.add(Column::text("Cancelled").help(help), |row| match row.cancellation {
            None => String::new(),
            Some(Cancellation { seen: 0, cancelled, .. }) => format!("0 of {}", count(cancelled)),
            Some(Cancellation { in_time, cancelled, p99_us, .. }) => {
                format!("{} of {}, {}", count(in_time), count(cancelled), human_us(p99_us))
            }
        });
    }
    let help = "Messages lost, doubled, out of order, altered or of another stream, and streams that failed, or ended like complete ones too early.";
    table.add(Column::number("Wrong", "").help(help), |row| Cell::count(row.wrong()));
    let kind = |row: &StreamRow| match (row.baseline, row.wrong()) {
        (true, _) => RowKind::Baseline,
        (false, 0) => RowKind::Plain,
        (false, _) => RowKind::Marked,
    };
    let table = table.table("streams", "Streams, message by message", rows, kind);
    Some(table.with_notes(["Times are medians over the trials of a product. The mean gap tells nothing of a product that holds messages, whose is the sender's."]))
}
