// The service worker of the installed page. For a push, it shows a notification that a request is
// pending. A click on the notification opens the page. The push contains no text about the request.

self.addEventListener("push", (e) => e.waitUntil(self.registration.showNotification("nod", {
  body: "Something waits for an answer.", icon: "icon-192.png", tag: "nod", renotify: true,
})));

self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  e.waitUntil(show());
});

async function show() {
  const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  return page ? page.focus() : self.clients.openWindow("./");
}
