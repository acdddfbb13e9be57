#include "optireduce/status.h"

#include <string>
#include <string_view>
#include <utility>

namespace optireduce {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kMismatch:
      return "mismatch";
    case Code::kTimeout:
      return "timeout";
    case Code::kPeerLost:
      return "peer lost";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kResource:
      return "resource limit";
    case Code::kAborted:
      return "aborted";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown code";
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string out(CodeName(code_));
  if (!text_.empty()) {
    out += ": ";
    out += text_;
  }
  return out;
}

Status Status::Context(std::string_view what) const {
  if (ok()) return *this;
  std::string text(what);
  if (!text_.empty()) {
    text += ": ";
    text += text_;
  }
  return {code_, std::move(text)};
}

}  // namespace optireduce
