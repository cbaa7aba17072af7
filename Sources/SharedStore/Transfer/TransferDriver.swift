internal import Curl
internal import Glibc
internal import SystemIO

/// Starts and ends the requests of a ``TransferClient``. Used on the loop's thread only.
final class TransferDriver: CurlLoopDriver {
    typealias Continuation = CheckedContinuation<Result<TransferResponse, StoreError>, Never>

    enum Message {
        case submit(Int, TransferRequest, Continuation)
        case cancel(Int)
    }

    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

    func handle(_ message: Message, on multi: borrowing MultiHandle<StoreError>) {
        switch message {
        case .submit(let id, let request, let continuation):
            do throws(StoreError) {
                if case .file(let file) = request.destination {
                    guard ftruncate(file.number, 0) == 0 else { throw .file(.last("ftruncate")) }
                }
                let transfer = try Transfer(id, request, continuation)
                try multi.add(transfer.easy.raw)
                transfers[transfer.easy.raw] = transfer
            } catch {
                continuation.resume(returning: .failure(error))
            }
        case .cancel(let id):
            guard let (easy, transfer) = transfers.first(where: { $0.value.id == id }) else { return }
            transfers[easy] = nil
            multi.remove(transfer.easy.raw)
            transfer.finish(.cancelled)
        }
    }

    func advance(on multi: borrowing MultiHandle<StoreError>) throws(StoreError) {
        try multi.perform()
        while let (easy, code) = multi.nextFinished() {
            guard let transfer = transfers.removeValue(forKey: easy) else { continue }
            multi.remove(transfer.easy.raw)
            transfer.finish(code)
        }
    }

    /// Only messages and libcurl's own timers end a wait early.
    var waitLimit: Int32 { 60_000 }

    func endAll(_ error: StoreError, on multi: borrowing MultiHandle<StoreError>) {
        for transfer in transfers.values {
            multi.remove(transfer.easy.raw)
            transfer.finish(error)
        }
        transfers.removeAll()
    }
}
