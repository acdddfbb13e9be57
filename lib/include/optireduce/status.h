// What became of a set-up step or an operation: a code, and a chain of contexts that says who,
// what and what to do. The network's own misbehaviour (loss, late, malformed) is never a Status
// but a counter and a loss report; bugs are OR_CHECK (lib/check.h), never a Status.
#ifndef OPTIREDUCE_STATUS_H_
#define OPTIREDUCE_STATUS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace optireduce {

enum class Code {
  kOk,
  kInvalidArgument,  // the caller's values, environment, flags or configuration
  kMismatch,         // ranks disagree: version, world size, configuration, count, dtype, operator
  kTimeout,          // something did not come in time; the text names who and what
  kPeerLost,         // a rank's process ended or its control connection broke
  kUnavailable,      // the machine refused: socket, address, permission
  kResource,         // a stated limit is reached
  kAborted,          // this group was aborted, here or by a peer
  kInternal,         // cannot happen; please report
};

std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(Code code, std::string text) : code_(code), text_(std::move(text)) {}
  static Status Ok() { return {}; }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  // The whole chain, outermost context first: "join group: connect to 10.0.0.1:29500: refused".
  const std::string& text() const { return text_; }
  // "timeout: join group: ..." for people; "ok" when ok.
  std::string ToString() const;

  // Puts a context in front of the chain; no effect on ok.
  Status Context(std::string_view what) const;

 private:
  Code code_ = Code::kOk;
  std::string text_;
};

// A value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}              // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}      // NOLINT(google-explicit-constructor)
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace optireduce

// Returns the status of EXPR from the enclosing function when it is not ok.
#define OR_RETURN_IF_ERROR(expr)                       \
  do {                                                 \
    ::optireduce::Status or_status_ = (expr);          \
    if (!or_status_.ok()) return or_status_;           \
  } while (false)

#endif  // OPTIREDUCE_STATUS_H_
