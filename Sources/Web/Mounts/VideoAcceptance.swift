/// Whether a client says that it can play the video (RFC 9110 section 12.5.1).
enum VideoAcceptance {
    /// Whether `Accept` names `video/mp4` or `video/*`. `*/*` does not count: `<img>` sends it in browsers that show no
    /// video there.
    static func isNamed(in values: [String]) -> Bool {
        ListField.elements(values).contains { element in
            (element.name == "video/mp4" || element.name == "video/*") && !element.parameters.contains(where: isZeroQuality)
        }
    }

    /// `q=0`, with up to three decimals (RFC 9110 section 12.4.2).
    private static func isZeroQuality(_ parameter: String) -> Bool {
        parameter.hasPrefix("q=0") && parameter.dropFirst(3).allSatisfy { $0 == "." || $0 == "0" }
    }
}
