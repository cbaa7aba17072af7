internal import CCurl

extension FetchOperation {
    /// Keeps what the transfer's end tells about time.
    func note(_ transfer: Transfer) {
        timings.nameLookup = transfer.easy.time(CURLINFO_NAMELOOKUP_TIME_T)
        timings.connect = max(transfer.easy.time(CURLINFO_CONNECT_TIME_T), transfer.easy.time(CURLINFO_APPCONNECT_TIME_T))
        timings.firstByte = transfer.easy.time(CURLINFO_STARTTRANSFER_TIME_T)
        if let started { timings.total = ContinuousClock.now - started }
    }

    func fetched(_ body: FetchedBody, from transfer: Transfer) -> FetchOutcome {
        .fetched(
            FetchedSource(
                bytes: body.bytes, count: body.count, sha256: body.sha256, validators: transfer.head.validators,
                cacheDirectives: transfer.head.cacheDirectives, finalURL: transfer.url, timings: timings))
    }

    func unmodified(_ transfer: Transfer) -> FetchOutcome {
        let repeated = transfer.head.validators
        return .notModified(
            UnmodifiedSource(
                validators: repeated.isEmpty ? request.validators : repeated,
                cacheDirectives: transfer.head.cacheDirectives, timings: timings))
    }
}
