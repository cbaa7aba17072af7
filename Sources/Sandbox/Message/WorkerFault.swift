/// Something a test has a worker do that no worker should. Builds other than for debugging do nothing of the kind.
package enum WorkerFault: Int, Sendable, CaseIterable {
    // Ends, by what it has come to.
    case killedWhenBegun = 1
    case killedWhenConfined
    case killedWhenConverted
    case killedWhenReplied
    case silentEnd

    // Lies.
    case noMessage
    case shortMessage
    case unknownMessage
    case twoReplies
    case flood
    case forgedExit
    case sentDescriptor
    case hang
    case spin
    case wrongLength
    case wrongSize
    case wrongDuration
    case wrongSampleCount
    case absurdSourceWidth
    case absurdSourceHeight
    case absurdLoopCount
    case negativeFailureValue
    case shortFile
    case garbledFile
    case foreignFile

    // Attempts to get out.
    case openFile
    case makeFile
    case readProc
    case connect
    case execute
    case trace
    case signalParent
    case fork
    case mapCode
    case writeChannelAsFile
}
