//! Alerts: how one side tells the other why it ends (RFC 8446, section 6). Error texts and the record layer use the
//! names.

/// The names in IANA's registry.
const NAMES: [(u8, &str); 35] = [
    (0, "close_notify"),
    (10, "unexpected_message"),
    (20, "bad_record_mac"),
    (21, "decryption_failed"),
    (22, "record_overflow"),
    (30, "decompression_failure"),
    (40, "handshake_failure"),
    (41, "no_certificate"),
    (42, "bad_certificate"),
    (43, "unsupported_certificate"),
    (44, "certificate_revoked"),
    (45, "certificate_expired"),
    (46, "certificate_unknown"),
    (47, "illegal_parameter"),
    (48, "unknown_ca"),
    (49, "access_denied"),
    (50, "decode_error"),
    (51, "decrypt_error"),
    (60, "export_restriction"),
    (70, "protocol_version"),
    (71, "insufficient_security"),
    (80, "internal_error"),
    (86, "inappropriate_fallback"),
    (90, "user_canceled"),
    (100, "no_renegotiation"),
    (109, "missing_extension"),
    (110, "unsupported_extension"),
    (111, "certificate_unobtainable"),
    (112, "unrecognized_name"),
    (113, "bad_certificate_status_response"),
    (114, "bad_certificate_hash_value"),
    (115, "unknown_psk_identity"),
    (116, "certificate_required"),
    (120, "no_application_protocol"),
    (121, "ech_required"),
];

pub(super) const CLOSE_NOTIFY: u8 = 0;
pub(super) const UNEXPECTED_MESSAGE: u8 = 10;
pub(super) const BAD_RECORD_MAC: u8 = 20;
pub(super) const RECORD_OVERFLOW: u8 = 22;
pub(super) const DECODE_ERROR: u8 = 50;
pub(super) const INTERNAL_ERROR: u8 = 80;
pub(super) const USER_CANCELED: u8 = 90;
pub(super) const NO_RENEGOTIATION: u8 = 100;

/// An alert, for people: `handshake_failure (40)`.
pub(super) fn text(alert: u8) -> String {
    match NAMES.iter().find(|(number, _)| *number == alert) {
        Some((number, name)) => format!("{name} ({number})"),
        None => format!("number {alert}, which has no name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_have_names_and_numbers() {
        assert_eq!(text(40), "handshake_failure (40)");
        assert_eq!(text(200), "number 200, which has no name");
        assert!(NAMES.is_sorted_by_key(|(number, _)| *number));
    }
}
