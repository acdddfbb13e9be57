// Boost.Asio as this project uses it: header only, without coroutines, through this one header.
//
// <utility> comes first because Boost 1.74's awaitable.hpp uses std::exchange without including
// it. Asio's fenced blocks are redundant with one thread per io_context and unknown to
// ThreadSanitizer, so they are off under it.
#ifndef OPTIREDUCE_TRANSPORT_CONTROL_ASIO_H_
#define OPTIREDUCE_TRANSPORT_CONTROL_ASIO_H_

#include <utility>

#if !defined(BOOST_ASIO_DISABLE_CO_AWAIT)
#define BOOST_ASIO_DISABLE_CO_AWAIT
#endif
#if !defined(BOOST_ASIO_NO_DEPRECATED)
#define BOOST_ASIO_NO_DEPRECATED
#endif
#if defined(__SANITIZE_THREAD__) && !defined(BOOST_ASIO_DISABLE_FENCED_BLOCK)
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

namespace optireduce::control {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Tcp = boost::asio::ip::tcp;

}  // namespace optireduce::control

#endif  // OPTIREDUCE_TRANSPORT_CONTROL_ASIO_H_
