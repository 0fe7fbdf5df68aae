import CredmgrPlatform
import Synchronization

/// Answers questions on threads that may block. Tasks that ask the same question while it is being answered share the
/// answer. A cancelled task stops waiting. The others still get the answer, and a refresh is never cut off.
final class SharedAnswers<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
  private typealias Waiting = CheckedContinuation<Answer, any Error>

  private struct State {
    var waiting: [Question: [Int: Waiting]] = [:]
    var count = 0
  }

  private let state = Mutex(State())
  private let threads: BlockingThreads

  init(on threads: BlockingThreads) { self.threads = threads }

  func answer(
    to question: Question, _ body: @escaping @Sendable () throws(CredentialsError) -> Answer
  ) async throws -> Answer {
    let number = state.withLock { state in
      state.count += 1
      return state.count
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        wait(number, for: question, continuation: continuation, body)
      }
    } onCancel: {
      let waiting = state.withLock { $0.waiting[question]?.removeValue(forKey: number) }
      waiting?.resume(throwing: CancellationError())
    }
  }

  private func wait(
    _ number: Int, for question: Question, continuation: Waiting,
    _ body: @escaping @Sendable () throws(CredentialsError) -> Answer
  ) {
    let isFirst: Bool? = state.withLock { state in
      // The handler of a cancellation that comes later finds the continuation.
      if Task.isCancelled { return nil }
      let isFirst = state.waiting[question] == nil
      state.waiting[question, default: [:]][number] = continuation
      return isFirst
    }
    guard let isFirst else { return continuation.resume(throwing: CancellationError()) }
    guard isFirst else { return }
    threads.run { [self] in
      let result = Result { () throws(CredentialsError) in try body() }
      let waiting = state.withLock { $0.waiting.removeValue(forKey: question) }
      for continuation in (waiting ?? [:]).values { continuation.resume(with: result.mapError { $0 }) }
    }
  }
}
