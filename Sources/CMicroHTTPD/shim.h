#include <microhttpd.h>

/* MHD_start_daemon takes its options as variable arguments, which Swift cannot pass. */
static inline struct MHD_Daemon *credmgr_start_daemon(
    int listening_socket, MHD_AccessHandlerCallback handler, void *handler_context,
    void *(*begun)(void *, const char *, struct MHD_Connection *), MHD_RequestCompletedCallback completed,
    unsigned int connection_timeout_seconds) {
  return MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, handler, handler_context,
      MHD_OPTION_LISTEN_SOCKET, listening_socket,
      MHD_OPTION_URI_LOG_CALLBACK, begun, handler_context,
      MHD_OPTION_NOTIFY_COMPLETED, completed, handler_context,
      MHD_OPTION_CONNECTION_TIMEOUT, connection_timeout_seconds,
      MHD_OPTION_END);
}
